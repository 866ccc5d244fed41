"""Decides where a sink begins in each partition, and where it continues."""
