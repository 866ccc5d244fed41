"""Authentication of the test server's clients: PLAIN and SCRAM, as a server answers them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

SCRAM = ("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1")
DIGESTS = {"SCRAM-SHA512": "sha512", "SCRAM-SHA256": "sha256", "SCRAM-SHA1": "sha1"}
ROUNDS, SALT = 4096, b"0123456789abcdef"


def plain_user(users: Mapping[str, str], value: str) -> str:
    """The user with this name and password; empty if there is none."""
    _, user, password = value.split("\0")
    return user if users.get(user) == password else ""


class ScramExchange:
    """One exchange: the client's first message, its answer, and the answer to the client's proof."""

    def __init__(self, mechanism: str, message: str) -> None:
        self._digest, self._bare = DIGESTS[mechanism], message.removeprefix("n,,")
        fields = dict(part.split("=", 1) for part in self._bare.split(","))
        self.user = fields["n"].replace("=2C", ",").replace("=3D", "=")
        self.challenge = f"r={fields['r']}serverNonce,s={base64.b64encode(SALT).decode()},i={ROUNDS}"

    def verifier(self, final: str, password: str | None) -> str:
        """The server's proof of itself if the client's proof is right; else empty."""
        digest = self._digest
        without, _, proof = final.rpartition(",p=")
        salted = hashlib.pbkdf2_hmac(digest, (password or "").encode(), SALT, ROUNDS)
        message = f"{self._bare},{self.challenge},{without}".encode()
        client_key = hmac.digest(salted, b"Client Key", digest)
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if password is None or base64.b64decode(proof) != expected:
            return ""
        signed = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
        return "v=" + base64.b64encode(signed).decode()
