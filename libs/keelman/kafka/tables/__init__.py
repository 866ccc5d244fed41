"""Compacted topics as tables in memory, and whole topics read once."""
