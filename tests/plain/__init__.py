"""A second simulator, written from docs/simulator.md alone, that checks the compiled one.

`simulator` plays the rules, `policies` holds the baselines in their most direct form and the two
test policies (`Script`, `Replay`), `cases` draws random small scenarios.
"""
