"""Copies records out of Kafka: consume, convert, write, commit the writer and then the group.

Begin with `copy.py` (the wiring), `loop.py` and `commits.py`, then `assignment.py`.
"""
