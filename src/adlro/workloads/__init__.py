"""Jobs in: the synthetic generator and the capacity that defines load."""
