"""Kafka's Java consumer in the virtual machine of a slot: its records stay in Java."""
