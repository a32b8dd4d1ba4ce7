"""Benchmarks of ADLRO, most of them side by side with other software on the same work."""
