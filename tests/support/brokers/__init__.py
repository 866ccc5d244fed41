"""Real Kafka brokers for tests: one, several, secure ones, and the proxy that holds their requests."""
