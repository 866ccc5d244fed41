"""A small real task loop and a service that hosts it, for the component tests of the Spark service."""
