"""Ohara's REST API (version 0.11) on keelman's own services: it parses requests, checks the rules of its own wire, and
builds answers. It holds no state.

Begin with `routes.py`, then `wire/call.py` and `wire/values.py`, then `workers/resource.py` and
`clusters/worker_specs.py`; docs/ohara.md. `definitions` has the tables of settings, `state` the calls of gRPC, and
each kind of object a room.
"""
