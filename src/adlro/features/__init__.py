"""Features for networks: of a start, of a job-pool pair and of a whole state; hypervectors."""
