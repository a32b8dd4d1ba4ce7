"""ADLRO: a scheduler for mixed GPU clusters that learns. Importing this package imports nothing."""

__version__ = "0.1.0"
