"""Times that several rooms of a worker agree on."""

LEASE_SECONDS = 3.0
"""The Spark service ends what a worker has there when it has not heard of the worker for so long."""
LOOK_AGAIN_SECONDS = 900.0
"""How often everything is looked at, also what nothing was notified of."""
SPARK_AWAY_SECONDS = 10.0
"""So long a worker's Spark service may be away before the worker gives its tasks back: one that restarts takes less."""
