"""`/v0/workers`, on worker clusters."""
