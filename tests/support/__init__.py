"""The common base of tests: processes to test against, worlds for decisions, connectors to load."""
