"""Plugins as files: their legal content, inspection and unpacking. No code of a plugin runs here."""
