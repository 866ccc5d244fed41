"""Connector definitions: what may stand in one, and whether its connector is still what was applied."""
