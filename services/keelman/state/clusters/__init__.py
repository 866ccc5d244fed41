"""What may stand in broker and worker clusters; what only one can have: ports, names in Kafka, an origin."""
