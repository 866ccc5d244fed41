"""Checks and completes broker and worker clusters, and what only one can have: ports, names in Kafka, an origin."""
