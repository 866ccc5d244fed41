"""Rows of workers: their starts and ends, and what many connectors weigh."""
