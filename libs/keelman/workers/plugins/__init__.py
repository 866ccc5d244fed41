"""Plugins as files: what may be in one, what is in it, and how it is unpacked. Nothing of a plugin is run here."""
