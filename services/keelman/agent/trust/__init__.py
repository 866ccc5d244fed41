"""Keeps what a node knows and shows: whom its agent trusts, its brokers' certificate, its workers' secrets."""
