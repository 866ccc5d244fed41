"""Judges a connector's whole configuration, as Connect's `validate` does."""
