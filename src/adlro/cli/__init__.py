"""The command line: one module per subcommand, each importing only click until it runs."""
