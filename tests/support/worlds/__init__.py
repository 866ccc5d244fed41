"""Worlds of words for what decides: a line is a command, and what it says is written behind it."""
