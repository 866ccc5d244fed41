"""Nodes, their processes, and the logs of these."""
