"""Previews: single records after each step of a connector's converters and transforms."""
