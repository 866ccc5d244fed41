"""Copies records out of Kafka: consume, convert, write, commit the writer and then the group."""
