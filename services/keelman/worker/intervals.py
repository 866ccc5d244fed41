"""Times that several packages of a worker share."""

LEASE_SECONDS = 3.0
"""The Spark service ends a worker's copy runs and slots there when the worker has been silent for so long."""
LOOK_AGAIN_SECONDS = 900.0
"""The interval of looks at everything, also at changes without a notice."""
SPARK_AWAY_SECONDS = 10.0
"""A worker's Spark service may be away for so long before the worker gives its tasks back: a restart takes less."""
