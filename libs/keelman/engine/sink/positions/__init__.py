"""Decides where a sink reads: its partitions, where it begins in each, and where it continues."""
