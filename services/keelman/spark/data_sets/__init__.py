"""Data sets that Spark reads and writes for connectors."""
