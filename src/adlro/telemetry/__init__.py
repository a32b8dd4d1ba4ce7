"""What the sensors of real GPUs say, whoever reads them, as one table; and scaled to [0, 1]."""
