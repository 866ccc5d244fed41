"""Slots: their copy runs, and their lives from start to end."""
