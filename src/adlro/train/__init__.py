"""Training: one `Run` (run.py) for three algorithms (adlro, adlro_preemptive, paper_dqn)."""
