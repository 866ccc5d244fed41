"""TLS from Java's key and trust stores, and the meaning of its failures."""
