"""The Spark service: slots and copy runs of one node."""
