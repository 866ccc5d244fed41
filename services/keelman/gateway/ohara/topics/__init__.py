"""`/v0/topics`, on topics of the state service: settings, partitions, and the records in them."""
