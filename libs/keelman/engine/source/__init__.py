"""Copies a source's records into Kafka: read, convert, and commit records and offsets together.

Begin with `loop.py`, then `boundary.py`, and `transactions.py` of the room `producing`.
"""
