"""Uploads and downloads plugins, and parses their names: NAME, or NAME:VERSION."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.connect.v1.plugin_pb2 import Plugin
from keelman.api.connect.v1.plugin_service_pb2_grpc import PluginServiceStub
from keelman.cli.output.words import size
from keelman.cli.waiting import Line
from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.rpc.errors import translated, translated_stream

CHUNK_BYTES = 1 << 20
RESUMES = 5
RESUME_SECONDS = 1.0


def split_name(text: str) -> tuple[str, str]:
    """Splits a name from its version, which may be empty."""
    name, _, version = text.replace("/", ":").partition(":")
    return name, version


async def upload(link: Any, file: Path, line: Line, **header: Any) -> Plugin:
    """Uploads a file and shows its progress; sends it once more if the gateway was away. Raises InvalidArgument."""
    try:
        with file.open("rb") as opened:
            total, sha256 = os.fstat(opened.fileno()).st_size, await asyncio.to_thread(_digest, opened)
    except OSError as error:
        raise InvalidArgument.of("FILE", str(file), f"a file that can be read ({error.strerror})") from None
    if not total:
        raise InvalidArgument.of("FILE", str(file), "a file that is not empty")
    upload_header = pb.UploadHeader(
        file_name=file.name, size_bytes=total, sha256=sha256, request_id=uuid.uuid4().hex, **header
    )

    async def pieces() -> AsyncIterator[pb.UploadPluginRequest]:
        yield pb.UploadPluginRequest(header=upload_header)
        sent = 0
        with file.open("rb") as opened:
            while chunk := await asyncio.to_thread(opened.read, CHUNK_BYTES):
                yield pb.UploadPluginRequest(chunk=chunk)
                sent += len(chunk)
                line.show(f"{file.name}: {_progress(sent, total)}{' sent' if sent < total else ', being inspected'}")

    stub: Any = PluginServiceStub(link)
    try:
        return await _answer(stub.UploadPlugin(pieces()))
    except Unavailable as error:
        if error.reason not in ("UNREACHABLE", "CALL_CUT"):
            raise
    await asyncio.sleep(RESUME_SECONDS)
    try:  # the answer may be lost in the middle of a large file: a header that was refused is refused again
        await _answer(stub.UploadPlugin(_only(upload_header), wait_for_ready=True))
    except InvalidArgument as error:
        if error.metadata.get("field") != "header.size_bytes":
            raise
    return await _answer(stub.UploadPlugin(pieces(), wait_for_ready=True))


async def _answer(call: Any) -> Plugin:
    with translated("the gateway"):
        plugin: Plugin = (await call).plugin
        return plugin


async def _only(header: pb.UploadHeader) -> AsyncIterator[pb.UploadPluginRequest]:
    yield pb.UploadPluginRequest(header=header)


async def download(link: Any, text: str, target: Path | None, line: Line, *, force: bool) -> tuple[Plugin, Path]:
    """Downloads a plugin's file, whole or not at all; resumes after a broken connection. Without a target the file gets
    its own name in the current folder. Raises FailedPrecondition if the target exists, Unavailable for a wrong digest.
    """
    name, version = split_name(text)
    got, plugin = 0, Plugin()
    folder = Path.cwd() if target is None else target.parent
    descriptor, temporary = tempfile.mkstemp(prefix=".keelman-", dir=folder)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            for attempt in range(RESUMES + 1):
                try:
                    async for piece in _pieces(link, name, version, got):
                        if piece.HasField("plugin"):
                            plugin, version = piece.plugin, piece.plugin.version
                            target = _free(folder / plugin.file_name if target is None else target, force=force)
                        file.write(piece.chunk)
                        got += len(piece.chunk)
                        line.show(f"{plugin.file_name}: {_progress(got, plugin.size_bytes)}")
                    break
                except Unavailable:
                    if attempt == RESUMES or not plugin.name:
                        raise
                    await asyncio.sleep(RESUME_SECONDS)
            file.flush()
            if await asyncio.to_thread(_digest, file) != plugin.sha256:
                raise Unavailable(f"the download of plugin {text} does not match its digest: try again")
        assert target is not None, "a download begins with its plugin"
        Path(temporary).chmod(0o644)
        os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return plugin, target


def _pieces(link: Any, name: str, version: str, offset: int) -> AsyncIterator[pb.DownloadPluginResponse]:
    stub: Any = PluginServiceStub(link)
    request = pb.DownloadPluginRequest(name=name, version=version, offset=offset)
    return translated_stream(stub.DownloadPlugin(request), peer="the gateway")


def _free(target: Path, *, force: bool) -> Path:
    if target.exists() and not force:
        raise FailedPrecondition(f"{target} exists: use another file with -o, or --force")
    return target


def _digest(file: Any) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _progress(done: int, total: int) -> str:
    """Returns the progress; without a terminal in steps of a tenth, so that not each piece prints a line."""
    if not sys.stderr.isatty():
        return f"{done * 10 // max(total, 1) * 10}% of {size(total)}"
    return f"{size(done)} of {size(total)}"
