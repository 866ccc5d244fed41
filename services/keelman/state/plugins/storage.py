"""The interface that every kind of storage for the files of plugins has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import IO, Protocol

CHUNK_BYTES = 1 << 20
"""The most bytes read or sent at once."""


class PluginStorage(Protocol):
    """Keeps files under keys, uids of plugins, each written once. Methods raise Unavailable when it does not answer."""

    @property
    def kind(self) -> str:
        """The storage's kind, as in the rows of plugins."""

    async def put(self, key: str, file: IO[bytes]) -> None:
        """Stores a file from its beginning. An interrupted upload is incomplete, and `stored` may list it."""

    def read(self, key: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Yields the bytes of a file from an offset on, in pieces of at most CHUNK_BYTES. Raises NotFound without the
        file."""

    async def delete(self, key: str) -> None:
        """Deletes a file, also an incomplete or missing one."""

    async def stored(self) -> Mapping[str, datetime]:
        """Returns the keys of all stored files, also of incomplete ones, with the time of each one's last write."""
