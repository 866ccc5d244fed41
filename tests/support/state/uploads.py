"""Uploads and downloads plugins for tests."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any

from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.connect.v1.plugin_pb2 import Plugin
from keelman.api.connect.v1.plugin_service_pb2_grpc import PluginServiceStub
from support.plugins import jar_files

CHUNK = 1 << 20
WEATHER = jar_files.class_bytes("com/acme/WeatherSource", jar_files.SOURCE)


def jar(size: int = 0, *, salt: str = "") -> bytes:
    """A jar with a source connector, and with so many bytes of noise, which cannot be compressed."""
    noise = b"".join(hashlib.sha256(f"{salt}{n}".encode()).digest() for n in range(size // 32))
    return jar_files.jar_bytes([WEATHER], {"salt": salt, "noise": noise})


async def pieces(data: bytes, **header: Any) -> AsyncIterator[pb.UploadPluginRequest]:
    header = {"file_name": "acme-1.2.jar", "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} | header
    yield pb.UploadPluginRequest(header=pb.UploadHeader(**header))
    for begin in range(0, len(data), CHUNK):
        yield pb.UploadPluginRequest(chunk=data[begin : begin + CHUNK])


async def upload(stub: PluginServiceStub, data: bytes, **header: Any) -> Plugin:
    return (await stub.UploadPlugin(pieces(data, **header))).plugin


async def download(stub: PluginServiceStub, name: str, version: str = "", offset: int = 0) -> tuple[Plugin, bytes]:
    plugin, data = None, bytearray()
    async for piece in stub.DownloadPlugin(pb.DownloadPluginRequest(name=name, version=version, offset=offset)):
        if piece.HasField("plugin"):
            plugin = piece.plugin
        data += piece.chunk
    assert plugin is not None
    return plugin, bytes(data)
