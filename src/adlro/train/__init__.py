"""Training: one `Run` (run.py) and three algorithms (adlro, adlro_preemptive, paper_dqn)."""
