"""Clusters of every kind side by side: their specs, nodes and ports, and the checks before a start."""
