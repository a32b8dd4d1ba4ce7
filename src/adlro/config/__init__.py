"""Settings of a run as frozen records: scenarios, and the TOML files that they are read from."""
