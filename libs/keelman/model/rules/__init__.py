"""Checks the names, labels, ports, counts and log destinations that users choose."""
