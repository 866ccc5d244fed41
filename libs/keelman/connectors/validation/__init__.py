"""Judges a connector's whole configuration, as Connect's `validate` does.

Begin with `configuration.py`, then keelman.connect.config.definition.
"""
