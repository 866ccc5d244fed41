"""Events: the outbox, published to Kafka and to watches, and the addresses of the events' brokers."""
