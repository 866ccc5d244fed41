"""A worker of Apache Kafka Connect: a small wrapper that starts, watches and drains the real thing."""
