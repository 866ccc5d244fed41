"""Connectors for tests to load, and their hosts."""
