"""JSON Schema in Confluent's mapping: schemas and values, both ways."""
