"""A delivery that an agent left incomplete when it was killed is undone or repeated by the next agent."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from keelman.agent.shipping.bucket_target import BucketTarget, FolderStore, S3Store, opened_store
from keelman.agent.shipping.file_target import FileTarget
from keelman.agent.shipping.progress import DeliveryProgress
from keelman.agent.shipping.source import Batch, Source, Stream
from keelman.model.errors import InvalidArgument
from keelman.runtime.logs.parts import Keeping, Log


def source_of(tmp_path: Path, text: bytes) -> Source:
    (tmp_path / "log").write_bytes(text)
    return Source(Stream("demo-0", "worker/demo/0", tmp_path / "log", "0" * 17))


def batch_of(source: Source, progress: DeliveryProgress) -> Batch:
    batch = source.read(progress, 1 << 20)
    assert batch is not None
    return batch


async def test_a_file_loses_what_was_written_and_not_kept(tmp_path: Path) -> None:
    target, source = FileTarget(tmp_path / "group" / "demo-0", Keeping()), source_of(tmp_path, b"a\nb\n")
    place = source.place(DeliveryProgress())
    async with target.opened(source) as writer:
        place = await writer.resume(place)
        await writer.write(batch_of(source, place), place)  # and is killed
    async with target.opened(source) as writer:
        assert await writer.resume(place) == place
        assert target.file.stat().st_size == 0
        place = await writer.write(batch_of(source, place), place)
    assert place.length == target.file.stat().st_size
    assert [line[-1:] for line in target.file.read_bytes().splitlines()] == [b"a", b"b"]


async def test_a_file_that_another_one_wrote_is_gone_on_with(tmp_path: Path) -> None:
    target, source = FileTarget(tmp_path / "demo-0", Keeping()), source_of(tmp_path, b"a\n")
    target.file.write_bytes(b"of a former cluster\n")
    async with target.opened(source) as writer:
        stored = await writer.resume(source.place(DeliveryProgress()))
        await writer.write(batch_of(source, stored), stored)
    assert target.file.read_bytes().splitlines()[0] == b"of a former cluster"


async def test_a_file_is_cut_only_where_its_length_is_kept(tmp_path: Path) -> None:
    target = FileTarget(tmp_path / "demo-0", Keeping(4096, 100))
    source = source_of(tmp_path, b"".join(b"line %d\n" % n for n in range(10_000)))
    place = source.place(DeliveryProgress())
    async with target.opened(source) as writer:
        place = await writer.resume(place)
        place = await writer.write(replace(batch_of(source, place), end=5), place)
        await writer.write(Batch((b"x",), 5, mine=False), place)  # cuts, and is killed
    assert Log(target.file).parts()[-1].end <= place.length
    async with target.opened(source) as writer:
        assert await writer.resume(place) == place
    assert target.file.stat().st_size == place.length


async def test_an_object_is_put_again_as_it_was(tmp_path: Path) -> None:
    kepts: list[DeliveryProgress] = []
    store = FolderStore(tmp_path / "bucket")
    target = BucketTarget(lambda: store, "a/demo-0", kepts.append, asyncio.Semaphore(1), 1 << 20, 1.0)
    source = source_of(tmp_path, b"a\nb\n")
    async with target.opened(source) as writer:
        stored = await writer.resume(source.place(DeliveryProgress()))
        await writer.write(batch_of(source, stored), stored)  # and is killed
    (file,) = (tmp_path / "bucket").rglob("*.log.gz")
    before = file.read_bytes()
    with (tmp_path / "log").open("ab") as log:
        log.write(b"c\n")
    async with target.opened(source) as writer:
        stored = await writer.resume(kepts[-1])
        assert (stored.position, stored.pending) == (4, None)
        assert file.read_bytes() == before
        file.unlink()
        assert await writer.resume(kepts[-1]) == stored  # killed before it was put
        assert file.read_bytes() == before
        stored = await writer.write(batch_of(source, stored), stored)
    paths = sorted((tmp_path / "bucket").rglob("*.log.gz"))
    assert [line[-1:] for path in paths for line in gzip.decompress(path.read_bytes()).splitlines()] == [
        b"a",
        b"b",
        b"c",
    ]
    assert sorted(path for path in (tmp_path / "bucket").rglob("*") if path.is_file()) == paths


async def test_when_an_object_is_due() -> None:
    target = BucketTarget(lambda: FolderStore(Path("x")), "a", lambda _: None, asyncio.Semaphore(1), 100, 5.0)
    assert [target.is_due(*size_and_age) for size_and_age in ((0, 9), (99, 4.9), (100, 0), (1, 5))] == [
        False,
        False,
        True,
        True,
    ]


def test_where_a_bucket_is() -> None:
    assert opened_store("/srv", "", "logs") == FolderStore(Path("/srv/logs"))
    assert isinstance(opened_store("http://127.0.0.1:1", "eu", "logs"), S3Store)
    with pytest.raises(InvalidArgument):
        opened_store("srv", "", "logs")
