"""Readers of job histories, one module for each format; `registry` recognises a file's format."""
