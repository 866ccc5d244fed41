"""Prints the answers of commands: tables, documents, names."""
