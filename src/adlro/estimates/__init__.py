"""Run-time estimates: one file an estimator, the same in simulations, histories and live use."""
