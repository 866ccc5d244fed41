"""Events: the outbox put out to Kafka and to those who watch, and where the events' brokers are."""
