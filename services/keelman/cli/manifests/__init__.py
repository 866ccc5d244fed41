"""Reads, judges and applies manifests for `keelman apply -f`, and writes manifests for `keelman export`."""
