"""Converters: between Connect's values and the bytes in Kafka."""
