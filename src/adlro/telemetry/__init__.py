"""Telemetry readings of real GPUs as one table, their GPUs in a cluster, and their bounds."""
