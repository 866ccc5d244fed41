"""Keeps secrets sealed at rest: each secret value of a row's JSON by itself, so that the rest of it stays readable.

A sealed value is AES-256-GCM under the key of `state.key_file`, bound to its place: it opens in no other row and under
no other key of the same row.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.ext.asyncio import AsyncSession

from keelman.connect.config.secret_keys import is_secret_key, literal_secrets, shown_json
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import REDACTOR

log = get_logger()
PREFIX = "sealed:1:"
SEALER = "sealer"  # of a session's info
KEY_BYTES, NONCE_BYTES = 32, 12


@dataclass(frozen=True, slots=True)
class Sealer:
    """Seals and opens values with one key. `file` is where that came from, for people."""

    key: bytes = field(repr=False)
    file: Path

    def seal(self, value: Any, *place: str) -> Any:
        """The JSON value with each secret in it sealed to its place, e.g. "worker_cluster", "demo", "spec".

        What is sealed or opened is shown in no log of this process from now on.
        """
        return _walked(value, place, "", self._sealed)

    def open(self, value: Any, *place: str) -> Any:
        """The JSON value that was sealed.

        Raises FailedPrecondition (KEY_WRONG) naming the key file where one was sealed with another key or elsewhere.
        """
        return _walked(value, place, "", self._opened)

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
        try:
            data = base64.urlsafe_b64decode(value.removeprefix(PREFIX))
            plain = AESGCM(self.key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], _bound(place))
        except (InvalidTag, ValueError, binascii.Error):
            raise wrong_key(self.file, f"{'/'.join(place)} was not sealed with it, or not there") from None
        text = plain[1:].decode("utf-8", "surrogatepass")
        if plain[:1] == b"t":
            REDACTOR.add(literal_secrets({key: text}))
            return text
        return float(text) if set(text) & set(".enai") else int(text)


def sealer_of(session: AsyncSession) -> Sealer:
    """The sealer of the database that a session is of."""
    found: Sealer = session.info[SEALER]
    return found


def wrong_key(file: Path, why: str) -> FailedPrecondition:
    """The error of a key file that does not open what is stored."""
    return FailedPrecondition(
        f"state.key_file: {str(file)!r} is not the key of this database's secrets ({why}): put the file back that it "
        "was started with before",
        reason="KEY_WRONG",
        metadata={"key_file": str(file)},
    )


def read_key(file: Path) -> bytes:
    """The key in a file. Raises InvalidArgument for a file that cannot be read or holds no key, FileNotFoundError for
    none."""
    legal = f"a readable file with {KEY_BYTES} bytes of base64, as the state service makes it"
    try:
        text = file.read_bytes()
        open_to = stat.S_IMODE(file.stat().st_mode) & 0o077
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidArgument.of("state.key_file", str(file), f"{legal} ({error.strerror})") from None
    if open_to:
        log.warning("key_file_open", file=str(file), message="others may read or write the key file: chmod 600")
    with contextlib.suppress(ValueError, binascii.Error):
        key = base64.b64decode(text.strip(), validate=True)
        if len(key) == KEY_BYTES:
            return key
    raise InvalidArgument.of("state.key_file", str(file), legal)


def made_key(file: Path) -> bytes:
    """The key of a new file that its owner alone may read; of the file that is there, when another was quicker.

    Raises InvalidArgument where it cannot be written.
    """
    key = base64.b64encode(os.urandom(KEY_BYTES)) + b"\n"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(key)
                stream.flush()
                os.fsync(stream.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temporary, file)
                log.info("key_file_made", file=str(file))
        finally:
            os.unlink(temporary)
    except OSError as error:
        raise InvalidArgument.of(
            "state.key_file", str(file), f"a file that can be written ({error.strerror})"
        ) from None
    return read_key(file)


def new_key_file(file: Path) -> Path:
    """Where a new key is until it has taken the place of the old one."""
    return file.with_name(file.name + ".new")


def _walked(value: Any, place: tuple[str, ...], key: str, change: Callable[[Any, str, tuple[str, ...]], Any]) -> Any:
    """The value with `change` done to what is no mapping and no list; `key` as in `shown_json`."""
    if isinstance(value, Mapping):
        return {
            name: _walked(one, (*place, name), key if is_secret_key(key) else name, change)
            for name, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_walked(one, (*place, str(number)), key, change) for number, one in enumerate(value)]
    return change(value, key, place)


def _bound(place: tuple[str, ...]) -> bytes:
    return b"".join(len(name := part.encode("utf-8", "surrogatepass")).to_bytes(4) + name for part in place)
