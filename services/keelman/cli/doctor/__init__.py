"""Checks a system for `keelman doctor`: each module judges what it is given, and names what is wrong and what helps."""
