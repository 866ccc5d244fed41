"""Reads the algorithms by which workers sign requests to each other: Connect's `inter.worker.*` keys."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.workers.properties.reader import PropertyReader

HMAC_SHA256 = "HmacSHA256"
VERIFIED = "inter.worker.verification.algorithms"
SIGNATURE = "inter.worker.signature.algorithm"
KEY_ALGORITHM = "inter.worker.key.generation.algorithm"
KEY_SIZE = "inter.worker.key.size"
KEY_BITS, MIN_KEY_BITS = 512, 40
SIGNED = (SIGNATURE, KEY_ALGORITHM)
HASHES = {
    "HmacMD5": "md5",
    "HmacSHA1": "sha1",
    "HmacSHA224": "sha224",
    "HmacSHA256": "sha256",
    "HmacSHA384": "sha384",
    "HmacSHA512": "sha512",
}
"""Java's names of the algorithms that its own provider has, and ours."""


def check_algorithms(reader: PropertyReader) -> None:
    """Notes an algorithm that is unknown, or that would sign but not be accepted, and keys that are too small."""
    reader.number(KEY_SIZE, KEY_BITS, MIN_KEY_BITS)
    accepted = accepted_algorithms(reader.raw)
    for key, names in ((VERIFIED, accepted), *((key, (reader.raw.get(key, HMAC_SHA256).strip(),)) for key in SIGNED)):
        for name in names:
            if name not in HASHES:
                reader.refuse(key, name, "one of " + ", ".join(HASHES))
            elif key == SIGNATURE and name not in accepted and reader.knows(VERIFIED):
                reader.refuse(key, name, f"one of those in {VERIFIED}: {', '.join(accepted)}")


def key_of(raw: Mapping[str, str]) -> tuple[str, int]:
    """Returns algorithm and size in bytes of the keys that a worker with these properties generates."""
    return raw.get(KEY_ALGORITHM, HMAC_SHA256).strip(), (int(raw.get(KEY_SIZE) or KEY_BITS) + 7) // 8


def accepted_algorithms(raw: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the algorithms that a worker with these properties accepts from others."""
    names = tuple(name.strip() for name in raw.get(VERIFIED, "").split(",") if name.strip())
    return names or (HMAC_SHA256,)
