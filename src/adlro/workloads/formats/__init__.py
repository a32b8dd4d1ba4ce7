"""Files of recorded jobs, one module a format; `registry` finds the one that a file is in."""
