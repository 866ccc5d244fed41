"""Connector definitions: their checks, and the drift of their connectors from the applied specs."""
