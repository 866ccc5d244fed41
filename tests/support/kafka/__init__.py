"""The common base of tests with brokers: three in one cluster, and producers of one."""
