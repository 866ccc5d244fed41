"""Identifies callers of the gateway by token, certificate or signature, and decides what each caller may do.

Begin with `rights.py` (the table of rights), then `guard.py` and `callers.py`; docs/access.md. Members of the
installation: keelman.rpc.identity and membership, then the state service's trust.
"""
