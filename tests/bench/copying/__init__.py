"""Rows of copying: rate, latency and cost."""
