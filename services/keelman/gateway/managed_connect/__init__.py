"""The managed Connect API, as the AWS SDKs call it, on the state service's resources; it stores nothing itself.

Begin with `routes.py` and `call.py` (the request on its raw path), then `members.py` (limits, as data) and
`connectors.py`; docs/managed-connect.md.
"""
