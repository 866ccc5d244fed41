"""The state service: nodes, clusters and placements in one database, planned, handed to the agents, told to Kafka."""
