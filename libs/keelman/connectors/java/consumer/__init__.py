"""Kafka's own consumer in the virtual machine of a slot: what it reads stays in Java."""
