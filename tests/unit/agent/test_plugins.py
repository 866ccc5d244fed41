"""The node's plugins: fetched over cuts and kills, verified, unpacked whole or not at all, shared, kept and dropped."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
import tarfile
import time
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from keelman.agent import plugins as module
from keelman.agent.plugins import MAX_TRIES, NodePlugins, unpack
from keelman.api.connect.v1.plugin_pb2 import Plugin
from keelman.api.node.v1.workload_pb2 import PluginFile
from keelman.model.errors import InvalidArgument, NotFound, Unavailable
from keelman.runtime.backoff import Backoff
from support.plugins import jar_files
from support.plugins.plugin_wheel import wheel

JAR = jar_files.jar_bytes(
    [jar_files.class_bytes("com/acme/WeatherSource", jar_files.SOURCE)], {"noise": os.urandom(5000)}
)


def zipped(**files: bytes) -> bytes:
    bytes_io = io.BytesIO()
    with zipfile.ZipFile(bytes_io, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return bytes_io.getvalue()


def file_of(data: bytes, file_name: str = "acme-1.2.jar") -> PluginFile:
    digest = hashlib.sha256(data).hexdigest()
    return PluginFile(name="acme", version="1.2", sha256=digest, size_bytes=len(data), file_name=file_name)


class Server:
    """Sends files in pieces and breaks off after `pieces` of them. `asked` has the requested offsets."""

    def __init__(self, data: bytes, *, pieces: int = 1_000_000, sent: bytes | None = None) -> None:
        self.data, self.sent, self.pieces, self.asked = data, data if sent is None else sent, pieces, list[int]()
        self.error: Exception = Unavailable("the line was cut")

    async def __call__(self, file: PluginFile, offset: int) -> AsyncGenerator[Plugin | bytes]:
        self.asked.append(offset)
        yield Plugin(name=file.name, version=file.version, sha256=hashlib.sha256(self.data).hexdigest())
        for number, begin in enumerate(range(offset, len(self.sent), 1000)):
            if number >= self.pieces:
                raise self.error
            yield self.sent[begin : begin + 1000]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backoff, "next", lambda self: 0.001)


def plugins(tmp_path: Path, server: Server, kept_seconds: float = 60) -> NodePlugins:
    node_plugins = NodePlugins(tmp_path / "plugins", server, kept_seconds=kept_seconds)
    node_plugins.begin()
    return node_plugins


def silent(message: str) -> None:
    return


def left(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "plugins").iterdir()}


async def test_a_file_is_fetched_once_for_all_that_want_it_and_resumed_after_each_cut(tmp_path: Path) -> None:
    server, file, messages = Server(JAR, pieces=2), file_of(JAR), list[str]()
    store = plugins(tmp_path, server)
    await asyncio.gather(*(store.ensure([file], messages.append) for _ in range(3)))
    assert server.asked == list(range(0, len(JAR), 2000))
    assert store.has([file])
    assert left(tmp_path) == {file.sha256}
    assert (tmp_path / "plugins" / file.sha256 / "acme" / "acme-1.2.jar").read_bytes() == JAR
    assert any("%" in text for text in messages)
    assert any("the line was cut" in text for text in messages)


async def test_what_does_not_come_is_said_and_tried_again_from_where_it_was(tmp_path: Path) -> None:
    server, file = Server(JAR, pieces=2), file_of(JAR)
    store = plugins(tmp_path, server)
    server.sent = JAR[:2500]
    server.pieces = 0
    with pytest.raises(Unavailable, match=r"plugin acme 1\.2: the line was cut") as caught:
        await store.ensure([file], silent)
    assert caught.value.reason == "PLUGIN_UNAVAILABLE"
    assert server.asked == [0] * MAX_TRIES
    server.sent, server.pieces, server.error = JAR, 100, NotFound("no plugin is named 'acme'")
    await store.ensure([file], silent)
    assert store.has([file])
    server.data, server.pieces = b"another", 0
    with pytest.raises(Unavailable, match="no plugin is named"):
        await store.ensure([file_of(b"another")], silent)


async def test_a_file_with_another_digest_is_never_unpacked(tmp_path: Path) -> None:
    server, file = Server(JAR, sent=JAR[:-1] + b"x"), file_of(JAR)
    with pytest.raises(Unavailable, match="another digest than the plugin"):
        await plugins(tmp_path, server).ensure([file], silent)
    assert len(server.asked) == 2
    assert left(tmp_path) == set()
    with pytest.raises(Unavailable, match="more came than its"):
        await plugins(tmp_path, Server(JAR, sent=JAR + b"x")).ensure([file], silent)
    assert left(tmp_path) == set()
    with pytest.raises(Unavailable, match="has the digest"):
        await plugins(tmp_path, Server(b"another")).ensure([file], silent)


async def test_a_full_disk_is_named_and_its_space_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("keelman.agent.plugins.unpack", full)
    with pytest.raises(Unavailable, match=f"no space is left for it below .*plugins .{len(JAR)} bytes") as caught:
        await plugins(tmp_path, Server(JAR)).ensure([file_of(JAR)], silent)
    assert caught.value.reason == "PLUGIN_UNAVAILABLE"
    assert left(tmp_path) == set()


async def test_a_broken_file_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    data = zipped(**{"../../up.jar": JAR})
    with pytest.raises(InvalidArgument, match=r"plugin acme 1.2: .*\.\.") as caught:
        await plugins(tmp_path, Server(data)).ensure([file_of(data, "acme.zip")], silent)
    assert caught.value.reason == "PLUGIN_BROKEN"
    with pytest.raises(InvalidArgument, match=r"plugin acme 1.2: .*'notes.txt' is no zip, jar") as caught:
        await plugins(tmp_path, Server(b"hello")).ensure([file_of(b"hello", "notes.txt")], silent)
    assert caught.value.reason == "PLUGIN_BROKEN"
    assert left(tmp_path) == set()


KILLS = {
    "before the rename": (module, "_open_to_all"),
    "while it is written": (module, "_write"),
}


@pytest.mark.parametrize("step", KILLS)
async def test_what_a_killed_agent_had_begun_is_done_by_the_next(tmp_path: Path, step: str) -> None:
    data = zipped(**{"acme/a.jar": JAR, "acme/lib/b.jar": JAR})
    file = file_of(data, "acme.zip")
    child = os.fork()
    if child == 0:  # dies in the middle, as by kill -9: nothing is cleaned up
        setattr(*KILLS[step], lambda *args: os.kill(os.getpid(), 9))
        part = tmp_path / "plugins" / f".{file.sha256}.part"
        part.parent.mkdir()
        part.write_bytes(data)
        unpack(part, tmp_path / "plugins" / file.sha256, name="acme", file_name="acme.zip")
        os._exit(0)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == -9
    assert file.sha256 not in left(tmp_path)
    assert any(name.startswith(module.BEGUN) for name in left(tmp_path))
    server = Server(data)
    store = plugins(tmp_path, server)
    assert left(tmp_path) == {f".{file.sha256}.part"}
    await store.ensure([file], silent)
    assert server.asked == []  # the file was complete already
    assert left(tmp_path) == {file.sha256}
    inside = tmp_path / "plugins" / file.sha256 / "acme"
    assert sorted(str(p.relative_to(inside)) for p in inside.rglob("*.jar")) == ["a.jar", "lib/b.jar"]


async def test_one_that_is_cancelled_leaves_its_part_for_the_next(tmp_path: Path) -> None:
    file, server = file_of(JAR), Server(JAR)
    store = plugins(tmp_path, server)
    begun = asyncio.Event()
    first = asyncio.ensure_future(store.ensure([file], lambda text: begun.set() if "%" in text else None))
    await begun.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await store.ensure([file], silent)
    assert server.asked[0] == 0
    assert server.asked[1] > 0


async def test_what_nobody_used_for_long_is_dropped(tmp_path: Path) -> None:
    used, unused, fresh = ("a" * 64, "b" * 64, "c" * 64)
    store = plugins(tmp_path, Server(JAR), kept_seconds=60)
    for name in (used, unused, fresh):
        (tmp_path / "plugins" / name / "acme").mkdir(parents=True)
    (tmp_path / "plugins" / f".{unused}.part").write_bytes(b"begun")
    old = time.time() - 61
    for name in (used, unused, f".{unused}.part"):
        os.utime(tmp_path / "plugins" / name, (old, old))
    await store.sweep({used})
    assert left(tmp_path) == {used, fresh}
    await store.sweep(set())
    assert left(tmp_path) == {used, fresh}  # the second plugin was used a moment ago


def test_each_kind_is_unpacked_as_a_plugin_path_has_it(tmp_path: Path) -> None:
    def made(data: bytes, file_name: str) -> list[str]:
        file, folder = tmp_path / "file", tmp_path / hashlib.sha256(data).hexdigest()
        file.write_bytes(data)
        unpack(file, folder, name="acme", file_name=file_name)
        assert {oct(p.stat().st_mode & 0o777) for p in folder.rglob("*")} <= {"0o755", "0o644"}
        return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())

    assert made(JAR, "a-1.jar") == ["acme/a-1.jar"]
    assert made(zipped(**{"a.jar": JAR, "lib/b.jar": JAR}), "a.zip") == ["acme/a.jar", "acme/lib/b.jar"]
    assert made(zipped(**{"a-1/lib/a.jar": JAR, "a-1/doc/README": b"x"}), "a.zip") == [
        "acme/doc/README",
        "acme/lib/a.jar",
    ]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("a-1/a.jar")
        info.size = len(JAR)
        archive.addfile(info, io.BytesIO(JAR))
    assert made(packed.getvalue(), "a.tar.gz") == ["acme/a.jar"]
    data = wheel(tmp_path / "wheels").read_bytes()
    assert made(zipped(**{"a/wheels/one.whl": data}), "a.zip") == ["acme/one.whl"]
    installed = made(data, "acme.whl")
    assert any(path.endswith(".dist-info/entry_points.txt") for path in installed)
    twice = zipped(**{"a/x.whl": data, "b/x.whl": data})
    with pytest.raises(InvalidArgument, match="would be unpacked twice"):
        made(twice, "a.zip")
