"""Reads, judges and does what manifests say for `keelman apply -f`, and writes manifests for `keelman export`."""
