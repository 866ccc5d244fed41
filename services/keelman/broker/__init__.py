"""A managed broker: Apache Kafka in KRaft mode, formatted, started, watched and drained as one process of a node."""
