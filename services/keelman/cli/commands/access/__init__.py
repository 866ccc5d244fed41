"""Reaching a gateway: contexts, and tokens for its callers."""
