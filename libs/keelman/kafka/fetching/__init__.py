"""Fetches record batches from leaders, at positions that are checked against the leader's log."""
