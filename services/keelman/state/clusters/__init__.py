"""Checks and completes broker and worker clusters, and their unique properties: ports, names in Kafka, an origin."""
