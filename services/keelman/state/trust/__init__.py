"""The installation's CA: the hosts that it lets join, the certificates that it signs, and the rights of callers."""
