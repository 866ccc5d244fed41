"""Rows of the state service and the gateway: clusters, nodes and connectors as resources."""
