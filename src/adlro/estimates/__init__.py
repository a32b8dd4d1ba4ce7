"""Run-time estimates: one file an estimator, the same in simulation and on a live cluster."""
