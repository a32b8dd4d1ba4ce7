"""A second simulator, written from docs/simulator.md alone, that checks the compiled one.

`things` are the nouns, `placement` and `timeline` the rules about room and about one run,
`simulator` plays them in time. `policies` holds the baselines in their most direct form, `script`
random decisions and their replay here, `recorded` the same two for the kernel, and `cases` draws
random small scenarios.
"""
