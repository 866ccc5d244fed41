"""Keeps secrets sealed at rest: each secret value of a row's JSON by itself, so that the rest of it stays readable.

A sealed value is AES-256-GCM under the key of `state.key_file` or `state.key_command`, bound to its place: it opens in
no other row and under no other key of the same row.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.ext.asyncio import AsyncSession

from keelman.connect.config.secret_keys import is_secret_key, literal_secrets, shown_json
from keelman.model.errors import FailedPrecondition
from keelman.runtime.logs.redaction import REDACTOR
from keelman.state.database.key_source import KeySource, setting_of

PREFIX = "sealed:1:"
_PREFIX = PREFIX.encode()
SEALER = "sealer"  # of a session's info
NONCE_BYTES = 12
TABLE, SECRET = "sealing", "secret"
PROOF = {SECRET: "what was sealed with the right key opens"}


@dataclass(frozen=True, slots=True)
class Sealer:
    """Seals values with its key; opens values sealed with it, or with any of `others` while a key is being changed.
    `source` is the origin of the key, for people."""

    key: bytes = field(repr=False)
    source: KeySource
    others: Sequence[bytes] = field(default=(), repr=False)
    proof: str = field(default="", repr=False)
    """The table's proof that all rows are sealed with this key; empty before it is read."""

    def seal(self, value: Any, *place: str) -> Any:
        """Returns the JSON value with each secret in it sealed to its place, e.g. "worker_cluster", "demo", "spec".

        From now on no log of this process shows the sealed or opened values.
        """
        return _walked(value, place, "", self._sealed)

    def open(self, value: Any, *place: str) -> Any:
        """Returns the JSON value that was sealed.

        Raises FailedPrecondition (KEY_WRONG) naming the key file if a value was sealed with another key or elsewhere.
        """
        return _walked(value, place, "", self._opened) if _has_sealed(value) else value

    def proves(self, proof: str) -> bool:
        """Returns whether the table's proof was sealed with this key."""
        try:
            return bool(replace(self, others=()).open({SECRET: proof}, TABLE) == PROOF)
        except FailedPrecondition:
            return False

    def made_proof(self) -> str:
        """Returns another proof of this key."""
        return str(self.seal(PROOF, TABLE)[SECRET])

    def handed_on(self, key: bytes) -> str:
        """Returns another key, sealed for those who have this one."""
        return str(self.seal({SECRET: base64.b64encode(key).decode()}, TABLE, "next")[SECRET])

    def after(self, proof: str, handed_on: str) -> Sealer:
        """Returns the sealer for a table's new key, which is known here or handed on to those who know the one before.

        Raises FailedPrecondition (KEY_WRONG).
        """
        keys = [self.key, *self.others]
        if handed_on:
            with contextlib.suppress(FailedPrecondition):
                text = self.open({SECRET: handed_on}, TABLE, "next")[SECRET]
                keys.append(base64.b64decode(text))
        for key in keys:
            if Sealer(key, self.source).proves(proof):
                return Sealer(key, self.source, tuple(other for other in keys if other != key), proof)
        raise wrong_key(self.source, "the stored values were sealed with another key")

    def _sealed(self, value: Any, key: str, place: tuple[str, ...]) -> Any:
        is_text = isinstance(value, str)
        if shown_json(value, key) == value and not (is_text and value.startswith(PREFIX)):
            return value
        if is_text:
            REDACTOR.add(literal_secrets({key: value}))
        nonce = os.urandom(NONCE_BYTES)
        plain = value.encode("utf-8", "surrogatepass") if is_text else repr(value).encode()
        sealed = AESGCM(self.key).encrypt(nonce, (b"t" if is_text else b"n") + plain, _bound(place))
        return PREFIX + base64.urlsafe_b64encode(nonce + sealed).decode()

    def _opened(self, value: Any, key: str, place: tuple[str, ...]) -> Any:
        if not isinstance(value, str) or not value.startswith(PREFIX):
            return value
        plain = self._plain(value.removeprefix(PREFIX), _bound(place))
        if plain is None:
            raise wrong_key(self.source, f"{'/'.join(place)} was not sealed with it, or not there")
        text = plain[1:].decode("utf-8", "surrogatepass")
        if plain[:1] == b"t":
            REDACTOR.add(literal_secrets({key: text}))
            return text
        return float(text) if set(text) & set(".enai") else int(text)

    def _plain(self, sealed: str, bound: bytes) -> bytes | None:
        for key in (self.key, *self.others):
            with contextlib.suppress(InvalidTag, ValueError, binascii.Error):
                data = base64.urlsafe_b64decode(sealed)
                return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], bound)
        return None


def sealer_of(session: AsyncSession) -> Sealer:
    """Returns the sealer of a session's database."""
    sealer: Sealer = session.info[SEALER]
    return sealer


def wrong_key(source: KeySource, reason: str) -> FailedPrecondition:
    """Returns the error for a key that does not open the stored values."""
    if isinstance(source, Path):
        remedy = "put the one back that it was started with before"
    else:
        remedy = (
            "print the key of its last start too, in a line after the new one, until a state service has logged "
            "key_changed"
        )
    return FailedPrecondition(
        f"{setting_of(source)}: {str(source)!r} is not the key of this database's secrets ({reason}): {remedy}",
        reason="KEY_WRONG",
        metadata={"key_file": str(source)},
    )


def _has_sealed(value: Any) -> bool:
    """Returns whether a JSON value may have something sealed in it: a twentieth of the time of a walk through it."""
    try:
        return _PREFIX in orjson.dumps(value)
    except orjson.JSONEncodeError:  # a lone surrogate, a number beyond 64 bits
        return True


def _walked(value: Any, place: tuple[str, ...], key: str, change: Callable[[Any, str, tuple[str, ...]], Any]) -> Any:
    """Returns the value with `change` applied to everything but mappings and lists; `key` as in `shown_json`."""
    if isinstance(value, Mapping):
        return {
            name: _walked(item, (*place, name), key if is_secret_key(key) else name, change)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_walked(item, (*place, str(number)), key, change) for number, item in enumerate(value)]
    return change(value, key, place)


def _bound(place: tuple[str, ...]) -> bytes:
    return b"".join(len(name := part.encode("utf-8", "surrogatepass")).to_bytes(4) + name for part in place)
