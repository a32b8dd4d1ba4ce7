"""Policies from files: a user's Python file, or the weights and the card of a learned policy."""
