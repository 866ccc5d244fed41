"""The only user of aiokafka: clients, topics, tables, group membership, feeds, record batches fetched and produced."""
