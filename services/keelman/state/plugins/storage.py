"""The interface that every kind of storage for the files of plugins has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import IO, Protocol

CHUNK_BYTES = 1 << 20
"""What is read or sent at once."""


class PluginStorage(Protocol):
    """Keeps files under keys, uids of plugins, each written once. Methods raise Unavailable when it does not answer."""

    @property
    def kind(self) -> str:
        """As it stands in the rows of plugins."""

    async def put(self, key: str, file: IO[bytes]) -> None:
        """Stores a file from its beginning. What is cut off is not whole, and may be found by `stored`."""

    def read(self, key: str, offset: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a file from an offset on, in pieces of at most CHUNK_BYTES. Raises NotFound without the file."""

    async def delete(self, key: str) -> None:
        """Forgets a file, or what there is of it; also one that there is not."""

    async def stored(self) -> Mapping[str, datetime]:
        """The keys of all that is stored, also in part, with the time when each was last written to."""
