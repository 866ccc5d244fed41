"""Asks the state service for what this API shows, by the keys that this API has."""
