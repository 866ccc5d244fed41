"""Reports: what workers and Spark services said through Kafka, kept in memory."""
