"""Kafka's flexible requests: primitive types and the base class of all requests that aiokafka's connections send."""
