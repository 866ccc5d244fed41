"""Roles and rights of callers, the tokens by which hosts join, and the secrets that are never shown."""
