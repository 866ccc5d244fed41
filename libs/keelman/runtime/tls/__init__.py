"""TLS from Java's key and trust stores, contexts of servers and clients, and the meaning of its failures."""
