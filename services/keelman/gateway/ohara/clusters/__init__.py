"""Clusters of every kind side by side: their nodes and ports, and the checks before a start."""
