"""Nodes, what runs on them, and its logs."""
