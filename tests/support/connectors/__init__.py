"""Connectors for tests to load, and what hosts them."""
