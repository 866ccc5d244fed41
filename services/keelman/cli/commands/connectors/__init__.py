"""Commands about connectors: their configurations, offsets and copy runs; one from a Python file; dedicated ones."""
