"""Channels that hand each call to another channel, chosen for that call."""
