"""Keeps files in a folder, of this host or shared by several hosts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from keelman.model.errors import NotFound, Unavailable
from keelman.runtime.home import sync_folder, writable
from keelman.state.plugins.storage import CHUNK_BYTES

_PART = ".part"


@dataclass(frozen=True, slots=True)
class FolderStorage:
    """`folder` belongs to one database alone: files in it that the database does not name are swept up."""

    folder: Path
    kind: str = "folder"

    def prepare(self) -> None:
        """Makes the folder. Raises InvalidArgument when it cannot be written."""
        writable("state.plugin_storage", self.folder, private=True)

    async def put(self, key: str, file: IO[bytes]) -> None:
        """See PluginStorage. Written beside its place, on the disk before it has its name."""
        with self._answers():
            await asyncio.to_thread(self._put, key, file)

    def _put(self, key: str, file: IO[bytes]) -> None:
        file.seek(0)
        part, target = self.folder / f"{key}{_PART}", self.folder / key
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
                shutil.copyfileobj(file, copy, CHUNK_BYTES)
                copy.flush()
                os.fsync(copy.fileno())
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)

    async def read(self, key: str, offset: int = 0) -> AsyncIterator[bytes]:
        """See PluginStorage."""
        with self._answers():
            try:
                file = await asyncio.to_thread((self.folder / key).open, "rb")
            except FileNotFoundError:
                raise NotFound(f"{self.folder} has no file {key}") from None
            with file:
                file.seek(offset)
                while data := await asyncio.to_thread(file.read, CHUNK_BYTES):
                    yield data

    async def delete(self, key: str) -> None:
        """See PluginStorage."""
        with self._answers():
            for path in (self.folder / f"{key}{_PART}", self.folder / key):
                await asyncio.to_thread(path.unlink, missing_ok=True)

    async def stored(self) -> Mapping[str, datetime]:
        """See PluginStorage."""
        with self._answers():
            return await asyncio.to_thread(self._stored)

    def _stored(self) -> Mapping[str, datetime]:
        times: dict[str, datetime] = {}
        for entry in os.scandir(self.folder):
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    time = datetime.fromtimestamp(entry.stat().st_mtime, UTC)
                    times[entry.name.removesuffix(_PART)] = time
        return times

    @contextlib.contextmanager
    def _answers(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = f"state.plugin_storage: {self.folder}"
            raise Unavailable(f"{where}: {error.strerror or error}", reason="PLUGIN_STORAGE") from error
