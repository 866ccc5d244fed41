"""Keeps the plugins that the node's workloads use: fetched, verified, unpacked once, and dropped when unused. A file's
content is checked as at its upload.

`<home>/plugins/<sha256>` is a file's content; an unfinished download is `.<sha256>.part` beside it, which a cut and a
killed agent leave for the next try.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path, PurePosixPath

from keelman.agent.trust.trust import StateLink
from keelman.api.connect.v1 import plugin_pb2, plugin_service_pb2
from keelman.api.connect.v1.plugin_service_pb2_grpc import PluginServiceStub
from keelman.api.node.v1.workload_pb2 import PluginFile, Workload
from keelman.model.errors import InvalidArgument, KeelmanError, NotFound, Unavailable
from keelman.model.plugins.plugin import PluginKind
from keelman.model.plugins.wheel_paths import installed_path
from keelman.model.workload import PLUGIN_BROKEN, PLUGIN_UNAVAILABLE
from keelman.rpc.errors import translated_stream
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.workers.plugins.archive import Archive, ArchiveEntry, copied, refusal
from keelman.workers.plugins.inspection import kind_of, opened

log = get_logger()
PART = ".part"
BEGUN = ".new-"
"""Prefix of folders that are being unpacked."""
GOING = ".old-"
"""Prefix of folders that are being deleted."""
WHEEL = ".whl"
FETCHES = 2
"""The number of files that are fetched at a time."""
MAX_TRIES = 6
"""Tries without a byte in between, before a workload's status reports that it cannot have a file."""
SWEEP_SECONDS = 60.0
NO_ROOM = {errno.ENOSPC, errno.EDQUOT}

Download = Callable[[PluginFile, int], AsyncGenerator[plugin_pb2.Plugin | bytes]]
"""Yields the state service's answer about a file from a byte on: its plugin, then bytes. Raises KeelmanError."""


class NodePlugins:
    """The unpacked plugins of a node. No other code uses `folder`."""

    def __init__(self, folder: Path, download: Download, kept_seconds: float) -> None:
        self._folder = folder
        self._download = download
        self._kept_seconds = kept_seconds
        self._turns: dict[str, asyncio.Lock] = {}
        self._room = asyncio.Semaphore(FETCHES)

    def begin(self) -> None:
        """Makes the folder, and clears away unfinished work of a killed agent. Raises OSError."""
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if path.name.startswith((BEGUN, GOING)):
                shutil.rmtree(path, ignore_errors=True)

    def has(self, files: Iterable[PluginFile]) -> bool:
        """Returns whether all of these are here."""
        return all(self._of(file).is_dir() for file in files)

    async def ensure(self, files: Iterable[PluginFile], on_progress: Callable[[str], None]) -> None:
        """Returns when all of these are here; calls `on_progress` with the present step, for people.

        May be cancelled: the next call continues from there. Raises Unavailable (PLUGIN_UNAVAILABLE) for a file that
        cannot be had, InvalidArgument (PLUGIN_BROKEN) for a file that cannot be unpacked.
        """
        for file in files:
            turn = self._turns.setdefault(file.sha256, asyncio.Lock())
            on_progress(f"waits for the files of plugin {_words(file)}")
            async with turn:  # of several that want it one fetches it
                if not self._of(file).is_dir():
                    async with self._room:
                        await self._fetch(file, on_progress)
            with contextlib.suppress(OSError):
                os.utime(self._of(file))

    async def keep(self, used: Callable[[], Collection[str]]) -> None:
        """Runs until cancelled: drops, now and then, files that have not been among the `used` digests for long."""
        while True:
            await asyncio.sleep(min(SWEEP_SECONDS, max(0.1, self._kept_seconds / 4)))
            try:
                await self.sweep(used())
            except OSError as error:
                log.warning("plugins_not_dropped", error=str(error))

    async def sweep(self, used: Collection[str]) -> None:
        """Drops files that are not used and were not for long. Raises OSError."""
        now, gone = time.time(), []
        for path in sorted(self._folder.iterdir()):
            digest = path.name.removeprefix(".").removesuffix(PART)
            if path.name.startswith((BEGUN, GOING)) or self._is_busy(digest):
                continue
            if digest in used:
                os.utime(path)
            elif now - path.stat().st_mtime >= self._kept_seconds:
                going = path.with_name(f"{GOING}{path.name.lstrip('.')}")
                path.rename(going)
                gone.append(going)
        for path in gone:
            await asyncio.to_thread(_delete, path)
            log.info("plugin_dropped", digest=path.name.removeprefix(GOING).removesuffix(PART))

    def _is_busy(self, digest: str) -> bool:
        return digest in self._turns and self._turns[digest].locked()

    def _of(self, file: PluginFile) -> Path:
        return self._folder / file.sha256

    async def _fetch(self, file: PluginFile, on_progress: Callable[[str], None]) -> None:
        part = self._folder / f".{file.sha256}{PART}"
        begun = time.monotonic()
        try:
            await self._receive(file, part, on_progress)
            on_progress(f"unpacks plugin {_words(file)}")
            await asyncio.to_thread(unpack, part, self._of(file), name=file.name, file_name=file.file_name)
        except OSError as error:
            if error.errno in NO_ROOM:
                part.unlink(missing_ok=True)
                need = f" ({file.size_bytes} bytes, and as many and more unpacked)"
                raise _unavailable(file, f"no space is left for it below {self._folder}{need}") from error
            raise _unavailable(file, f"its files cannot be written: {error}") from error
        except InvalidArgument as error:
            part.unlink(missing_ok=True)
            raise InvalidArgument(f"plugin {_words(file)}: {error.message}", reason=PLUGIN_BROKEN) from error
        part.unlink(missing_ok=True)
        log.info("plugin_fetched", plugin=_words(file), digest=file.sha256, seconds=round(time.monotonic() - begun, 2))

    async def _receive(self, file: PluginFile, part: Path, on_progress: Callable[[str], None]) -> None:
        """Leaves the whole file, verified, in `part`."""
        backoff, tries, wrong = Backoff(), 0, 0
        while True:
            have = part.stat().st_size if part.exists() else 0
            try:
                await self._append(file, part, have, on_progress)
                if await asyncio.to_thread(digest_of, part) == file.sha256:
                    return
                part.unlink()
                wrong, message = wrong + 1, "the downloaded file has another digest than the plugin"
                if wrong > 1:
                    raise _unavailable(file, message)
            except NotFound as error:
                raise _unavailable(file, error.message) from error
            except KeelmanError as error:
                if error.reason == PLUGIN_UNAVAILABLE:
                    raise
                message = error.message
            tries = 0 if part.exists() and part.stat().st_size > have else tries + 1
            if tries >= MAX_TRIES:
                raise _unavailable(file, message)
            on_progress(f"plugin {_words(file)} did not come yet: {message}")
            await asyncio.sleep(backoff.next() if tries else 0.1)

    async def _append(self, file: PluginFile, part: Path, have: int, on_progress: Callable[[str], None]) -> None:
        if have and have == file.size_bytes:
            return
        if have > file.size_bytes > 0:
            part.unlink()
            have = 0
        with part.open("ab") as stream:
            async with aclosing(self._download(file, have)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, plugin_pb2.Plugin):
                        if piece.sha256 != file.sha256:
                            raise _unavailable(file, f"that has the digest {piece.sha256} and not {file.sha256}")
                        continue
                    have += len(piece)
                    if have > file.size_bytes > 0:
                        part.unlink()
                        raise _unavailable(file, f"more came than its {file.size_bytes} bytes")
                    await asyncio.to_thread(stream.write, piece)
                    share = f", {100 * have // file.size_bytes} %" if file.size_bytes else ""
                    on_progress(f"fetches plugin {_words(file)}{share}")


def files_of(workload: Workload | None) -> Sequence[PluginFile]:
    """Returns the files that a workload's process needs."""
    if workload is None or workload.spec.WhichOneof("kind") != "worker":
        return ()
    return (*workload.spec.worker.plugins, *workload.spec.worker.libraries)


def downloads(address: str, link: StateLink) -> Download:
    """Returns a download from the state service at host:port."""

    async def download(file: PluginFile, offset: int) -> AsyncGenerator[plugin_pb2.Plugin | bytes]:
        request = plugin_service_pb2.DownloadPluginRequest(name=file.name, version=file.version, offset=offset)
        async with link.channel(address) as channel:
            call = PluginServiceStub(channel).DownloadPlugin(request)
            async for answer in translated_stream(call, peer=f"the state service at {address}"):
                yield answer.plugin if answer.WhichOneof("piece") == "plugin" else answer.chunk

    return download


def _words(file: PluginFile) -> str:
    return f"{file.name} {file.version}"


def _unavailable(file: PluginFile, reason: str) -> Unavailable:
    return Unavailable(f"plugin {_words(file)}: {reason}", reason=PLUGIN_UNAVAILABLE)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def digest_of(file: Path) -> str:
    """Returns the file's sha256 in hex. Raises OSError."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unpack(file: Path, folder: Path, *, name: str, file_name: str) -> None:
    """Makes the folder, which has one folder of the plugin's name as a `plugin.path` has it: the jars and wheels of an
    archive, a jar as it is, a wheel as it is installed.

    The folder is there whole or not at all. Raises ArchiveRefused for a file that cannot be used, OSError.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f"{BEGUN}{folder.name[:16]}-", dir=folder.parent))
    try:
        inside = temporary / name
        inside.mkdir()
        kind = kind_of(file, file_name)
        if kind is PluginKind.JAR:
            with opened(file, kind):  # checks it
                shutil.copyfile(file, inside / (PurePosixPath(file_name).name or f"{name}.jar"))
        else:
            with opened(file, kind, scratch=temporary) as archive:
                paths = _as_installed(archive) if kind is PluginKind.WHEEL else _as_plugin(archive.entries)
                _write(archive, paths, inside)
        _open_to_all(temporary)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _as_installed(archive: Archive) -> Iterator[tuple[ArchiveEntry, str]]:
    """Yields a wheel's entries at the paths of an installation; none that are not imported."""
    for entry in archive.entries:
        path = installed_path(entry.path)
        if path is not None:
            yield entry, str(path)


def _as_plugin(entries: Sequence[ArchiveEntry]) -> Iterator[tuple[ArchiveEntry, str]]:
    """Yields an archive's entries without their common folder; wheels at the top, where they are searched."""
    tops = {PurePosixPath(entry.path).parts[0] for entry in entries}
    nested = len(tops) == 1 and all("/" in entry.path for entry in entries)
    for entry in entries:
        path = entry.path.partition("/")[2] if nested else entry.path
        yield entry, path.rpartition("/")[2] if path.lower().endswith(WHEEL) else path


def _write(archive: Archive, paths: Iterator[tuple[ArchiveEntry, str]], folder: Path) -> None:
    for entry, path in paths:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                copied(archive, entry, file)
        except FileExistsError:
            raise refusal("name", "would be unpacked twice", entry.path) from None


def _open_to_all(folder: Path) -> None:
    """Makes the folder readable for all: workloads may run as another user than the agent."""
    for path, _, files in os.walk(folder):
        os.chmod(path, 0o755)
        for name in files:
            os.chmod(os.path.join(path, name), 0o644)
