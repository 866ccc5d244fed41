"""The consumer of a sink: its subscription and its place in the group."""
