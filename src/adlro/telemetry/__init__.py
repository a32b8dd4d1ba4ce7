"""Reads telemetry of GPUs into one table, finds its GPUs in a cluster, and learns its bounds."""
