"""Slots: their copy runs, and their lives from start to end.

Begin with `choice.py` and `pool.py`, then keelman.engine.slot.host.
"""
