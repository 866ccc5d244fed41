"""What the specs of clusters mean in Kafka: worker properties, listeners, and which clusters are one Kafka."""
