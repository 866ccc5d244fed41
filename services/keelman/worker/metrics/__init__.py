"""How a worker is seen from outside: metrics, reports, problems."""
