"""Times that several packages of a worker share."""

LEASE_SECONDS = 3.0
"""Seconds of a worker's silence after which the Spark service ends the worker's copy runs and slots there."""
LOOK_AGAIN_SECONDS = 900.0
"""The interval of looks at everything, also at changes without a notice."""
SPARK_AWAY_SECONDS = 10.0
"""Seconds that a worker's Spark service may be away before the worker gives its tasks back: a restart takes less."""
