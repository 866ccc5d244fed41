"""The leader's queries of connectors' classes: their task configurations, and whether these are still valid."""
