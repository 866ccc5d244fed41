"""Shows a worker to the outside: metrics, reports, problems."""
