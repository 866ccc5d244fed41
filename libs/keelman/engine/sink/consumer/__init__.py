"""The consumer of a sink: what it subscribes to, its place in the group, and how it is polled."""
