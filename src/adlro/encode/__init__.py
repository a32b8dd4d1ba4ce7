"""From state to numbers: the Min-Min plan that policies and features share."""
