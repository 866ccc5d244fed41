"""The common base of the tests on Spark: the real service, a small real task loop that it hosts, and a cluster."""
