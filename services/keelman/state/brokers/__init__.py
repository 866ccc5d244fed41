"""Queries clusters' brokers for the state service itself, and takes lost nodes' workers out of their groups."""
