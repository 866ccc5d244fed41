"""Dedicated connectors: their checks, the worker cluster made for each, and their states."""
