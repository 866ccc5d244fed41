"""What tests with brokers share: three in one cluster, and producers of one."""
