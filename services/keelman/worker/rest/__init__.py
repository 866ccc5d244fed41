"""Connect's REST API: what a worker answers over HTTP, and who may ask."""
