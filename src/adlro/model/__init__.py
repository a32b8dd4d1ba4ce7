"""Data model: GPU models, clusters, jobs, and the records that a policy reads and writes."""
