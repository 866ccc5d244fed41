"""Logging: lines of one form, levels that change while a process runs, and nothing secret."""
