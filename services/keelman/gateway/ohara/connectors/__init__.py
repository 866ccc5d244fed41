"""`/v0/connectors`, on connector definitions: their configurations for Connect, and their workers' reports."""
