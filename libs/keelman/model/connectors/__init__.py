"""Connectors as users want them, with a worker cluster of their own or without, and how its workers are configured."""
