"""Several state services of one database: the choice of their leader, and the messages between them.

Begin with `lease.py` and `leader.py`, then `fenced.py` and `exchange.py`; docs/replicas.md.
"""
