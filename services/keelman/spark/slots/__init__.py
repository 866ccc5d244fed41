"""Slots: which copy run gets which, and each from its start to its end."""
