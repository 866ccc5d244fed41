"""Writes to Kafka for a copy run: packs record batches, sends them, commits transactions, and writes dead letters."""
