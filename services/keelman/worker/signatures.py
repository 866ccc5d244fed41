"""What workers ask of each other inside their group, signed with the key of the config topic, as in Connect."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from keelman.worker.rest_errors import RestError

AUTHORIZATION = "x-connect-authorization"
ALGORITHM = "x-connect-request-signature-algorithm"
HMAC_SHA256 = "HmacSHA256"


def signed(key: str, body: bytes) -> dict[str, str]:
    """The headers of a request with this body; `key` is base64."""
    return {AUTHORIZATION: base64.b64encode(_signature(key, body)).decode(), ALGORITHM: HMAC_SHA256}


def check(headers: Mapping[str, str], body: bytes, key: str) -> None:
    """Raises 400 for a request that is not signed, 503 while there is no key, 403 for a wrong signature.

    `headers` are found by name in lower case.
    """
    signature, algorithm = headers.get(AUTHORIZATION), headers.get(ALGORITHM)
    if signature is None or algorithm is None:
        raise RestError(400, "Internal request missing signature")
    if algorithm.lower() != HMAC_SHA256.lower():
        raise RestError(400, f"This worker does not support the '{algorithm}' algorithm: it supports {HMAC_SHA256}")
    if not key:
        raise RestError(503, "This worker is still starting up and has not been able to read a session key yet")
    try:
        given = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        raise RestError(400, "Internal request has a signature that is not base64") from None
    if not hmac.compare_digest(given, _signature(key, body)):
        raise RestError(403, "Internal request contained invalid signature.")


def _signature(key: str, body: bytes) -> bytes:
    return hmac.new(base64.b64decode(key), body, hashlib.sha256).digest()
