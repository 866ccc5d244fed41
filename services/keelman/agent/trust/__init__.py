"""The credentials of a node: its agent's trust, its brokers' certificate, its workers' secrets."""
