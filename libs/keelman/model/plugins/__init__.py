"""Plugins: their files, their copies from buckets, and which of them a worker cluster loads."""
