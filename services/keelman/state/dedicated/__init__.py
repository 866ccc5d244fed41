"""Dedicated connectors: their checks, the worker cluster made for each, and their states.

Begin with `life.py`, `composition.py` and `rules.py`, then `operations.py`; docs/dedicated-connectors.md.
"""
