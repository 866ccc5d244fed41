"""Tasks without work: their watches, and their return when there is more.

Begin with `parking.py` and `watcher.py`, after keelman.engine.watches.
"""
