"""Hosts on this machine with networks of their own, and their operators."""
