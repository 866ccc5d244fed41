"""Signs and checks requests between the workers of a group, with the key of the config topic.

Our workers check and never send such: the leader makes tasks' configurations and fences by itself. A client's request
is passed on with the client's own credentials, which the worker that does it checks again: nothing to sign there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from keelman.worker.errors import RestError
from keelman.workers.properties.signature_algorithms import HASHES, HMAC_SHA256

AUTHORIZATION = "x-connect-authorization"
ALGORITHM = "x-connect-request-signature-algorithm"
NO_KEY = "This worker is still starting up and has not been able to read a session key from the config topic yet"


def check(headers: Mapping[str, str], body: bytes, key: str, accepted: tuple[str, ...] = (HMAC_SHA256,)) -> None:
    """Raises 400 for a request that is not signed, 503 while there is no key, 403 for a wrong signature.

    `headers` are found by name in lower case, `key` is base64.
    """
    signature, algorithm = headers.get(AUTHORIZATION), headers.get(ALGORITHM)
    if signature is None or algorithm is None:
        raise RestError(400, "Internal request missing required signature")
    algorithm_name = next((name for name in HASHES if name.lower() == algorithm.lower()), None)
    if algorithm_name is None:
        raise RestError(400, f"Algorithm {algorithm} not available")
    try:
        sent = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        raise RestError(400, "Input byte array has wrong 4-byte ending unit") from None
    if algorithm_name.lower() not in {name.lower() for name in accepted}:
        raise RestError(
            400,
            f"This worker does not support the '{algorithm}' key signing algorithm used by other workers. This worker "
            f"is currently configured to use: [{', '.join(accepted)}]. Check that all workers' configuration files "
            "permit the same set of signature algorithms, and correct any misconfigured worker and restart it.",
        )
    if not key:
        raise RestError(503, NO_KEY)
    if not hmac.compare_digest(sent, _signature(key, body, algorithm_name)):
        raise RestError(403, "Internal request contained invalid signature.")


def _signature(key: str, body: bytes, algorithm: str) -> bytes:
    return hmac.new(base64.b64decode(key), body, getattr(hashlib, HASHES[algorithm])).digest()
