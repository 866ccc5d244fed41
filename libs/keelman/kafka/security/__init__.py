"""Authentication of clients, and trust in brokers."""
