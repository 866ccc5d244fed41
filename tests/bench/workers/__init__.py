"""Rows of workers: their starts and ends, and the memory of many connectors."""
