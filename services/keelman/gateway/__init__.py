"""The gateway: gRPC for every client, HTTP for Connect's clients; owns nothing, validates and forwards.

Begin with `service.py`, then `validation.py`.
"""
