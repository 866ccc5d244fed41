"""Real servers for tests beside brokers: Kafka Connect, databases, object stores, schema registries, HTTP."""
