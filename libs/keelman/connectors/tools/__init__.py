"""Connectors for tests and measurements."""
