"""Secrets: sealed in the database, hidden from answers and events."""
