"""Ohara's REST API (version 0.11) on keelman's own services: it parses requests, checks the rules of its own wire, and
builds answers. It holds no state."""
