"""Load policies from files: a user's Python file, or the weights and card of a learned policy."""
