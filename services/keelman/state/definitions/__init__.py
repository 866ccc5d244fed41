"""Connector definitions: their checks, and the drift of their connectors from the applied specs.

Begin with `applying.py`, then `drift.py`; docs/definitions.md.
"""
