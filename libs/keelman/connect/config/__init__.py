"""Configurations: keys with their rules, plugins and references in them."""
