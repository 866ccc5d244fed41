"""A worker: the connectors and tasks that its group gave it, and Connect's REST API."""
