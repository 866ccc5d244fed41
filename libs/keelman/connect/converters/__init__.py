"""Converters: between Connect's values and the bytes in Kafka.

Begin with `converter.py`; with a schema registry `registry_converter.py`, then `converter.py` of the room `avro`.
"""
