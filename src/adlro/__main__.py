"""`python -m adlro` is the same as `adlro`."""

from adlro.cli.main import main

main()
