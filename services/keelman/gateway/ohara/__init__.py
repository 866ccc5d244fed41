"""Ohara's REST API (version 0.11) on keelman's own services: it takes requests apart, checks what only its wire
knows, and puts answers together. It holds no state."""
