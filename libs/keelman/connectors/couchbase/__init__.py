"""Couchbase's source connectors: that of 2016 and today's official one, under their Java names."""
