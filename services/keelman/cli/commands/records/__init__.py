"""The commands that show records: those of a topic, what a connector makes of a few, and its dead letters."""
