"""The only user of aiokafka: clients, consume loops, group membership, envelopes, compacted-topic tables."""
