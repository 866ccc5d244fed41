"""Data sets that Spark reads and writes: SparkSource and SparkSink."""
