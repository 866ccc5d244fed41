"""Identifies callers of the gateway by token, certificate or signature, and decides what each caller may do."""
