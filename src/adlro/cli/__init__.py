"""The command line: one module a subcommand, each importing only click until it runs."""
