"""Dedicated connectors: what may stand in one, the worker cluster that comes of it, and where it stands."""
