"""TLS from Java's key and trust stores, and what its failures mean."""
