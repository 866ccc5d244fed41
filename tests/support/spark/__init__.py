"""What tests on Spark share: the real service, a small real task loop that it hosts, and a cluster to run on."""
