"""Measures keelman beside Apache Kafka Connect, on the same machine and broker, in the same run: `make bench`."""
