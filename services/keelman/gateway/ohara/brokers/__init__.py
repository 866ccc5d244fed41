"""Broker clusters: managed ones with settings of Ohara's users, and clusters created outside this API."""
