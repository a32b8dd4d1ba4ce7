"""Training: labels from the simulator, a network fitted to them, then tuned on whole episodes."""
