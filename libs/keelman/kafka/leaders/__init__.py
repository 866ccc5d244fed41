"""A client that knows the partitions' leaders: their epochs, topic ids, and the newest of the brokers' reports."""
