"""The commands that show records: those of a topic, previews of a connector, and its dead letters."""
