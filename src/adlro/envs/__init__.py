"""The simulator step by step, for learners: many copies at once, and as Gymnasium environments."""
