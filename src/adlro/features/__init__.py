"""Features of a view for networks: of a start, of a job-pool pair, of a state; hypervectors."""
