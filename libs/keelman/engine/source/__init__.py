"""Copies a source's records into Kafka: read, convert, produce, commit records and offsets together."""
