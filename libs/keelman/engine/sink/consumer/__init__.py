"""The consumer of a sink: its subscription, its place in the group, and its polls."""
