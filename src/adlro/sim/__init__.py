"""The simulated world: events, placement and the clock, compiled; it knows no policy."""
