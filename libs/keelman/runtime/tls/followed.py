"""Contexts of clients that outlive their key and trust stores: each connection uses the files of its time."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from keelman.model.errors import InvalidArgument

_FILES = ("ssl.truststore.location", "ssl.keystore.location")
Properties = tuple[tuple[str, str], ...]


class FollowedContext(ssl.SSLContext):
    """A client's context that reads its stores again once their files have changed. While a file cannot be read, for
    instance because it is half written, its earlier content counts."""

    def __new__(cls, _properties: Mapping[str, str]) -> FollowedContext:
        """Creates a context of the kind that clients use."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, properties: Mapping[str, str]) -> None:
        """`properties` are Java's `ssl.*`. Raises InvalidArgument naming the one at fault."""
        self._properties = dict(properties)
        self._last = self._read()

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """Delegates to the context of the present files."""
        return self.present.wrap_bio(*arguments, **named)

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:
        """Delegates to the context of the present files."""
        return self.present.wrap_socket(*arguments, **named)

    @property
    def present(self) -> ssl.SSLContext:
        """The context for the present files, shared by all clients of the same properties."""
        with suppress(InvalidArgument):
            self._last = self._read()
        return self._last

    def _read(self) -> ssl.SSLContext:
        return _context(of_tls(self._properties), stores_changed(self._properties))


def stores_changed(properties: Mapping[str, str]) -> tuple[int, ...]:
    """Returns when the stores' files were changed; after a change, a new client gets another context."""
    stamps = []
    for key in _FILES:
        if properties.get(key):
            with suppress(OSError):
                stamps.append(Path(properties[key]).stat().st_mtime_ns)
    return tuple(stamps)


def of_tls(properties: Mapping[str, str]) -> Properties:
    """Returns the TLS properties, as a key."""
    return tuple(sorted((k, v) for k, v in properties.items() if k.startswith("ssl.")))


@lru_cache(maxsize=64)
def _context(properties: Properties, _changed: tuple[int, ...]) -> ssl.SSLContext:
    from keelman.runtime.tls.contexts import client_context  # noqa: PLC0415  (7 MB that a client without TLS need not have)

    return client_context(dict(properties))
