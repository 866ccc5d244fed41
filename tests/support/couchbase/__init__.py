"""A Couchbase data service for tests: what DCP clients see of one, several nodes in one process, on loopback."""
