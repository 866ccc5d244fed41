"""What the tasks of connectors are given, and what they say of their offsets and of the data that Spark reads."""
