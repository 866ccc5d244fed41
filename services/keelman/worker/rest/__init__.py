"""Connect's REST API: a worker's answers over HTTP, and its access rules."""
