"""Reads this API's objects from the state service, by this API's keys."""
