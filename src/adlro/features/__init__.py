"""A view as vectors for networks: features of a start, of a pair, of a state; hypervectors."""
