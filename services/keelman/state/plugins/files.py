"""Receives the files of plugins, and keeps them in a storage for as long as a plugin names them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO

from keelman.model import errors
from keelman.model.plugins.plugin import Plugin
from keelman.runtime.background import Background
from keelman.runtime.logs.logging import get_logger
from keelman.state.database.failpoints import hit
from keelman.state.plugins.storage import CHUNK_BYTES, PluginStorage
from keelman.state.resources.store import ResourceStore

log = get_logger()
PIECE_SECONDS = 60.0
WHOLE_SECONDS = 3600.0
UPLOADS = 4
"""The number received and inspected at once; others wait."""
ORPHAN_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Quotas:
    """Bytes of the largest file, and of all together."""

    file_bytes: int
    total_bytes: int

    def check_file(self, size: int) -> None:
        """Raises Exhausted for a file of more bytes than one file may have."""
        if size > self.file_bytes:
            raise errors.Exhausted(
                f"the file has more than {self.file_bytes} bytes: state.plugin_max_bytes allows no more",
                reason="PLUGIN_TOO_LARGE",
                metadata={"max_bytes": str(self.file_bytes)},
            )

    def check_total(self, present: int, size: int) -> None:
        """Raises Exhausted when all plugins would have too many bytes with another file of this size."""
        if present + size > self.total_bytes:
            raise errors.Exhausted(
                f"{size} bytes more than the {present} bytes of the present plugins are more than "
                f"{self.total_bytes} bytes: state.plugins_max_bytes allows no more; delete plugins that are not used",
                reason="PLUGIN_QUOTA",
                metadata={"bytes": str(present), "max_bytes": str(self.total_bytes)},
            )


@dataclass(frozen=True, slots=True)
class Received:
    """A completely received file, without a name on the disk."""

    file: IO[bytes]
    size_bytes: int
    sha256: str
    md5: str


@dataclass(slots=True)
class PluginFiles:
    """`storage` keeps new files; `others` may keep older ones, by their kind."""

    store: ResourceStore
    storage: PluginStorage
    quotas: Quotas
    scratch: Path
    """A folder for nameless files, with room for the largest ones."""
    others: Mapping[str, PluginStorage] = field(default_factory=dict)
    sole: bool = False
    """True if no other process can use this database: files that no plugin names at the first sweep are leftovers."""
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(UPLOADS))
    _writing: set[str] = field(default_factory=set)
    _swept: bool = False
    _background: Background = field(
        default_factory=lambda: Background(lambda error: log.warning("plugin_file_left", error=str(error)))
    )

    @contextlib.asynccontextmanager
    async def received(
        self,
        pieces: AsyncIterator[bytes],
        *,
        size_bytes: int | None = None,
        sha256: str = "",
        may_be_empty: bool = False,
    ) -> AsyncIterator[Received]:
        """Receives a file, checked against size and digest if these are given. It is deleted after the block.

        Raises Exhausted, InvalidArgument for another size or digest, DeadlineExceeded when nothing comes for long.
        """
        self.quotas.check_file(size_bytes or 0)
        async with self._turns:
            with self._nameless() as file:
                received = await self._receive(file, pieces, size_bytes)
                if not (received.size_bytes or may_be_empty):
                    raise errors.InvalidArgument("the file is empty", reason="PLUGIN_EMPTY")
                if sha256 and received.sha256 != sha256.lower():
                    text = f"that of the bytes that came, {received.sha256}: the file is damaged, or another one"
                    raise errors.InvalidArgument.of("header.sha256", sha256, text)
                hit("plugin-received")
                yield received

    @contextlib.contextmanager
    def _nameless(self) -> Iterator[IO[bytes]]:
        """Opens a file that disappears with this process. Raises Unavailable when it cannot be written."""
        try:
            with tempfile.TemporaryFile(dir=self.scratch) as file:
                yield file
        except OSError as error:
            text = f"the file cannot be stored in {self.scratch} while it arrives: {error.strerror or error}"
            raise errors.Unavailable(text, reason="NO_ROOM") from error

    async def _receive(self, file: IO[bytes], pieces: AsyncIterator[bytes], size_bytes: int | None) -> Received:
        size, sha256, md5 = 0, hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        async for piece in _in_time(pieces):
            size += len(piece)
            self.quotas.check_file(size)
            if size_bytes is not None and size > size_bytes:
                break
            sha256.update(piece)
            md5.update(piece)
            file.write(piece)
        if size_bytes is not None and size != size_bytes:
            raise errors.InvalidArgument.of("header.size_bytes", size_bytes, f"the number of bytes that came, {size}")
        file.flush()
        return Received(file, size, sha256.hexdigest(), md5.hexdigest())

    @contextlib.asynccontextmanager
    async def stored(self, key: str, file: IO[bytes]) -> AsyncIterator[None]:
        """Keeps a file in the storage within the block; after it only if a plugin has the key as its uid by then."""
        self._writing.add(key)
        try:
            await self.storage.put(key, file)
            hit("plugin-stored")
            yield
        finally:
            self._background.start(self._settle(key))

    async def _settle(self, key: str) -> None:
        try:
            await self.store.catch_up()  # an interrupted commit may have been stored
            if key not in {plugin.uid for plugin in self.store.snapshot.plugins.values()}:
                await self.storage.delete(key)
        finally:
            self._writing.discard(key)

    def forget(self, plugin: Plugin) -> None:
        """Deletes the file of a deleted plugin, soon."""
        self._background.start(self._forget(plugin))

    async def _forget(self, plugin: Plugin) -> None:
        await self._of(plugin).delete(plugin.uid)

    async def read(self, plugin: Plugin, offset: int) -> AsyncIterator[bytes]:
        """Yields the bytes of a plugin's file from an offset on. Raises Unavailable if it has fewer than it should."""
        left = plugin.size_bytes - offset
        if not left:  # some storages keep nothing of an empty file
            return
        try:
            async for piece in self._of(plugin).read(plugin.uid, offset):
                left -= len(piece)
                yield piece
        except errors.NotFound:
            left = -1
        if left:
            raise errors.Unavailable(
                f"the file of plugin {plugin.name} is not whole in the {plugin.storage} storage: if it was not deleted "
                "just now, delete it and upload it again",
                reason="PLUGIN_FILE_MISSING",
                metadata={"plugin": plugin.name},
            )

    def _of(self, plugin: Plugin) -> PluginStorage:
        for other in (self.storage, *self.others.values()):
            if other.kind == plugin.storage:
                return other
        raise errors.FailedPrecondition(
            f"the file of plugin {plugin.name} is in the {plugin.storage} storage, and state.plugin_storage is another "
            "one now: set that again, or delete the plugin and upload it",
            reason="PLUGIN_STORAGE",
            metadata={"plugin": plugin.name, "storage": plugin.storage},
        )

    async def sweep(self) -> None:
        """Deletes files that no plugin names and no one writes: left by processes that were killed."""
        for storage in (self.storage, *self.others.values()):
            if storage is self.storage or storage.kind != self.storage.kind:
                await self._sweep(storage)
        self._swept = True

    async def _sweep(self, storage: PluginStorage) -> None:
        writing = set(self._writing)
        stored = await storage.stored()
        await self.store.catch_up()
        named = {plugin.uid for plugin in self.store.snapshot.plugins.values()}
        oldest = self.store.database.clock() - timedelta(seconds=ORPHAN_SECONDS)
        nobodys = self.sole and not self._swept
        for key, time in stored.items():
            if key not in named | writing | self._writing and (nobodys or time < oldest):
                await storage.delete(key)
                log.info("plugin_file_swept", key=key, storage=storage.kind)

    async def close(self) -> None:
        """Ends the deletions under way; the next start's sweep completes them."""
        await self._background.close()


async def _in_time(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yields the pieces as they come. Raises DeadlineExceeded if none comes, or if they come too slowly."""
    loop = asyncio.get_running_loop()
    end = loop.time() + WHOLE_SECONDS
    while True:
        try:
            async with asyncio.timeout_at(min(loop.time() + PIECE_SECONDS, end)):
                piece = await anext(pieces, None)
        except TimeoutError:
            late = f"no piece of the file came for {PIECE_SECONDS:.0f} s, or not all within {WHOLE_SECONDS:.0f} s"
            raise errors.DeadlineExceeded(late) from None
        if piece is None:
            return
        yield piece


def checked_piece(piece: bytes) -> bytes:
    """Returns a piece of an upload; raises InvalidArgument if it is too large."""
    if len(piece) > CHUNK_BYTES:
        raise errors.InvalidArgument.of("chunk", f"{len(piece)} bytes", f"at most {CHUNK_BYTES} bytes")
    return piece
