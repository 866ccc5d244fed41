"""Authentication: SCRAM by RFC 5802 and RFC 7677, and PLAIN over TLS only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Collection

from keelman.couchbase.errors import CouchbaseError

PLAIN = "PLAIN"
SCRAM = {"SCRAM-SHA512": "sha512", "SCRAM-SHA256": "sha256", "SCRAM-SHA1": "sha1"}
"""Mechanisms as Couchbase names them, the strongest first, with hashlib's names of their digests."""
MAX_ITERATIONS = 1_000_000


def plain(user: str, password: str) -> bytes:
    """Returns the message of PLAIN."""
    return b"\0" + user.encode() + b"\0" + password.encode()


def mechanism_of(offered: Collection[str], where: str) -> str:
    """Returns the strongest SCRAM mechanism that a server offers. Raises CouchbaseError if it offers none: any other
    mechanism would send the password in clear text."""
    for name in SCRAM:
        if name in offered:
            return name
    raise CouchbaseError(
        f"{where} offers only {', '.join(sorted(offered)) or 'nothing'} to log in with, which sends the password in "
        f"the clear: it needs one of {', '.join(SCRAM)}, or TLS (couchbase.enable.tls)"
    )


class Scram:
    """One SCRAM exchange."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str = "") -> None:
        """`nonce` is the client's, random where none is given."""
        self._digest = SCRAM[mechanism]
        self._password = password.encode()
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(21)).decode()
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """Returns the client's first message."""
        return f"n,,{self._first}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Returns the client's last message, the answer to the server's first. Raises CouchbaseError for an invalid
        message."""
        fields = _fields(server_first)
        try:
            nonce, salt, rounds = fields["r"], base64.b64decode(fields["s"], validate=True), int(fields["i"])
        except (KeyError, ValueError):
            raise CouchbaseError(f"the server's first SCRAM message is invalid: {server_first!r}") from None
        if not nonce.startswith(self._nonce) or nonce == self._nonce or not 0 < rounds <= MAX_ITERATIONS:
            raise CouchbaseError("the server's first SCRAM message has another nonce, or no sensible count of rounds")
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, salt, rounds)
        client_key = self._mac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"
        message = f"{self._first},{server_first.decode()},{without_proof}".encode()
        proof = _xor(client_key, self._mac(hashlib.new(self._digest, client_key).digest(), message))
        self._signature = self._mac(self._mac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Raises CouchbaseError where the server does not prove that it knows the password."""
        field = _fields(server_final).get("v", "")
        try:
            signature = base64.b64decode(field, validate=True)
        except ValueError:
            signature = b""
        if not self._signature or not hmac.compare_digest(signature, self._signature):
            raise CouchbaseError("the server does not prove that it knows the user: its SCRAM signature is wrong")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._digest).digest()


def _fields(message: bytes) -> dict[str, str]:
    parts = message.decode("utf-8", "replace").split(",")
    return {part[:1]: part[2:] for part in parts if part[1:2] == "="}


def _xor(left: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, other, strict=True))
