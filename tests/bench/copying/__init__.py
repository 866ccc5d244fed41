"""Rows of copying: how fast, how soon, and what it costs."""
