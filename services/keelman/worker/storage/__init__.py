"""Reads and writes the worker's three topics."""
