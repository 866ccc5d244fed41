"""A Couchbase data service for tests, as DCP clients see it: several nodes in one process, on loopback."""
