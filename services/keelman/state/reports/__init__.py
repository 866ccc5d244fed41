"""Reports of workers and Spark services through Kafka, kept in memory."""
