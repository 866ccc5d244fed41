"""Avro in Confluent's mapping: schemas and values, both ways."""
