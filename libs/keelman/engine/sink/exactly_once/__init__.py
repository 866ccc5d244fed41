"""Offsets that a sink keeps with its data, in a topic or a journal, and who may write them."""
