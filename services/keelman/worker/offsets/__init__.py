"""Offsets of connectors, as REST tells and changes them."""
