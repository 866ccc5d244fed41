"""Finds who calls the gateway, by token, certificate or signature, and decides what each caller may do."""
