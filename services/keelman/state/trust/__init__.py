"""The installation's CA: the hosts that it lets join, the certificates that it signs, and the rights of callers.

Begin with `members.py`, `authority.py` and `callers.py`; docs/trust.md.
"""
