"""Readers of job histories, one module a format; `registry` recognises the format of a file."""
