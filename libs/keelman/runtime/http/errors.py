"""Builds the bodies of HTTP errors, in the form of Connect's: `{"error_code", "message"}`."""

from __future__ import annotations

import json

import orjson

from keelman.runtime.logs.redaction import REDACTOR


def error_body(status: int, message: str | None) -> bytes:
    """Returns the JSON body of an error, without secrets. For every server that answers Connect's clients."""
    body = {"error_code": status, "message": None if message is None else REDACTOR.hide(message)}
    try:
        return orjson.dumps(body)
    except TypeError:  # half a surrogate pair from a request
        return json.dumps(body).encode()
