"""Broker clusters: managed ones with what Ohara's users set, and those that were made past this API."""
