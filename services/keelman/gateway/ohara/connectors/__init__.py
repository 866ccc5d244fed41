"""`/v0/connectors`, on connector definitions: what is sent to Connect, and what its workers report of it."""
