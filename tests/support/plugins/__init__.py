"""Plugins for tests: made as wheels and jars, or published ones by their lock files."""
