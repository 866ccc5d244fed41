"""Plugins for tests: built as wheels and jars, or published ones by their lock files."""
