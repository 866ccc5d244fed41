"""Worlds of words for tests of decisions: a line is a command, and its output follows it."""
