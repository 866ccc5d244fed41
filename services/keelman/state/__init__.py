"""The state service: nodes, clusters and placements in one database: planned, assigned to agents, published to
Kafka."""
