"""Callers without credentials in large numbers: what served callers and the gateway notice of them."""
