"""Whole record batches: packed, queued, sent in order, in transactions if configured."""
