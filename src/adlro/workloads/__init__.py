"""Workloads, drawn from a scenario or read from a history, and the capacity that defines load."""
