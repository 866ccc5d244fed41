"""Secrets: sealed in the database, hidden from answers and events.

Begin with `sealing.py` of the room `database`, then `sealed_rows.py`, and `hidden.py` of the room `resources`;
docs/secrets.md.
"""
