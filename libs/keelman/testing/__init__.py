"""Fixtures and fakes for tests: real brokers and processes, and helpers that wait for a state instead of sleeping."""
