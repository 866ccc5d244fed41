"""Hosts on this machine with networks of their own, and who operates them."""
