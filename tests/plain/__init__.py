"""A second, independent simulator in plain Python that checks the compiled one.

It is written from docs/simulator.md alone and shares only record dtypes and constants with the
package. `records` defines jobs, nodes and GPUs; `placement`, `rules` and `timeline` implement the
rules of placement, eligibility and a single run; `simulator` is the event loop. `policies` holds
the baselines in their most direct form and `registry` lists all plain policies. `script` makes
random decisions and replays them here, `recorded` does both for the kernel, and `cases` draws
random small scenarios.
"""
