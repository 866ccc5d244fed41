"""Checks a system for `keelman doctor`: each module judges its input, and names problems and remedies."""
