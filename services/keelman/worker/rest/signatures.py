"""What workers ask of each other inside their group, signed with the key of the config topic, as in Connect."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from keelman.worker.properties.reader import PropertyReader
from keelman.worker.rest.errors import RestError

AUTHORIZATION = "x-connect-authorization"
ALGORITHM = "x-connect-request-signature-algorithm"
HMAC_SHA256 = "HmacSHA256"
VERIFIED = "inter.worker.verification.algorithms"
SIGNATURE = "inter.worker.signature.algorithm"
SIGNED = (SIGNATURE, "inter.worker.key.generation.algorithm")
NO_KEY = "This worker is still starting up and has not been able to read a session key from the config topic yet"
# Java's names of the algorithms that its own provider has, and ours.
_HASHES = {
    "HmacMD5": "md5",
    "HmacSHA1": "sha1",
    "HmacSHA224": "sha224",
    "HmacSHA256": "sha256",
    "HmacSHA384": "sha384",
    "HmacSHA512": "sha512",
}


def check_algorithms(reader: PropertyReader) -> None:
    """Notes an algorithm of `inter.worker.*` that is unknown, or that would be signed with and not accepted."""
    accepted = algorithms(reader.raw)
    for key, names in ((VERIFIED, accepted), *((one, (reader.raw.get(one, HMAC_SHA256).strip(),)) for one in SIGNED)):
        for name in names:
            if name not in _HASHES:
                reader.refuse(key, name, "one of " + ", ".join(_HASHES))
            elif key == SIGNATURE and name not in accepted:
                reader.refuse(key, name, f"one of those in {VERIFIED}: {', '.join(accepted)}")


def algorithms(raw: Mapping[str, str]) -> tuple[str, ...]:
    """The algorithms that this worker accepts, by its properties (`inter.worker.verification.algorithms`)."""
    given = tuple(name.strip() for name in raw.get(VERIFIED, "").split(",") if name.strip())
    return given or (HMAC_SHA256,)


def signed(key: str, body: bytes) -> dict[str, str]:
    """The headers of a request with this body; `key` is base64."""
    return {AUTHORIZATION: base64.b64encode(_signature(key, body, HMAC_SHA256)).decode(), ALGORITHM: HMAC_SHA256}


def check(headers: Mapping[str, str], body: bytes, key: str, accepted: tuple[str, ...] = (HMAC_SHA256,)) -> None:
    """Raises 400 for a request that is not signed, 503 while there is no key, 403 for a wrong signature.

    `headers` are found by name in lower case.
    """
    signature, algorithm = headers.get(AUTHORIZATION), headers.get(ALGORITHM)
    if signature is None or algorithm is None:
        raise RestError(400, "Internal request missing required signature")
    known = next((name for name in _HASHES if name.lower() == algorithm.lower()), None)
    if known is None:
        raise RestError(400, f"Algorithm {algorithm} not available")
    try:
        given = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        raise RestError(400, "Input byte array has wrong 4-byte ending unit") from None
    if known.lower() not in {name.lower() for name in accepted}:
        raise RestError(
            400,
            f"This worker does not support the '{algorithm}' key signing algorithm used by other workers. This worker "
            f"is currently configured to use: [{', '.join(accepted)}]. Check that all workers' configuration files "
            "permit the same set of signature algorithms, and correct any misconfigured worker and restart it.",
        )
    if not key:
        raise RestError(503, NO_KEY)
    if not hmac.compare_digest(given, _signature(key, body, known)):
        raise RestError(403, "Internal request contained invalid signature.")


def _signature(key: str, body: bytes, algorithm: str) -> bytes:
    return hmac.new(base64.b64decode(key), body, getattr(hashlib, _HASHES[algorithm])).digest()
