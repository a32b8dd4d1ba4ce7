"""What came of it: metrics of a run, paired comparison over seeds, pictures."""
