"""Policies that come from files: a user's Python file, or the weights and card of a learned one."""
