"""The state service: nodes, clusters and placements in one database: planned, assigned to agents, published to
Kafka.

Begin with `service.py` (the wiring), then `resources/store.py`, one noun such as `nouns/worker_cluster.py`, and
`planning/planner.py`.
"""
