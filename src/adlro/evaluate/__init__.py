"""Evaluation: metrics of a run, comparisons paired by seed, explanations and reports."""
