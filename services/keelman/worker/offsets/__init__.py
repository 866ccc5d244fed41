"""Offsets of connectors, as REST shows and changes them."""
