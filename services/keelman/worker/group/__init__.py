"""The group of workers: membership, leadership, and the sharing of work.

Begin with `membership.py`, then `herder.py` and `leader.py`, then `farewell.py`.
"""
