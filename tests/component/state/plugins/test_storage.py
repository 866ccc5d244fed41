"""The rules of every storage of plugins' files: the same tests for each kind, over the real thing."""

import io
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keelman.model.errors import InvalidArgument, NotFound, Unavailable
from keelman.state.database.database import open_database
from keelman.state.plugins.database_storage import DatabaseStorage
from keelman.state.plugins.folder_storage import FolderStorage
from keelman.state.plugins.s3_storage import PART_BYTES, S3Storage
from keelman.state.plugins.storage import CHUNK_BYTES, PluginStorage
from support.servers.object_store import ObjectStore

pytestmark = pytest.mark.component
BUCKET = "plugins"
DATA = random.Random(7).randbytes(2 * CHUNK_BYTES + 1000)


@pytest.fixture(params=["sqlite", "postgresql", "folder", "s3"])
def place(request, tmp_path) -> tuple[str, Any]:
    """The construction of a storage, by its kind."""
    match request.param:
        case "s3":
            return "s3", request.getfixturevalue("s3")
        case "folder":
            return "folder", tmp_path / "shared" / "mine"
        case "sqlite":
            return "database", str(tmp_path / "state.db")
        case _:
            return "database", request.getfixturevalue("postgresql")()


@pytest.fixture
async def storage(place: tuple[str, Any], name: str) -> AsyncIterator[PluginStorage]:
    kind, value = place
    if kind == "s3":
        yield S3Storage.of(f"s3://{BUCKET}/some/{name}", "mine", endpoint=value.endpoint)
    elif kind == "folder":
        folder_storage = FolderStorage(value)
        folder_storage.prepare()
        yield folder_storage
    else:
        async with open_database(value) as database:
            yield DatabaseStorage(database)


async def read(storage: PluginStorage, key: str, offset: int = 0) -> bytes:
    pieces = [piece async for piece in storage.read(key, offset)]
    assert all(len(piece) <= CHUNK_BYTES for piece in pieces)
    return b"".join(pieces)


async def test_what_is_stored_is_read_from_any_place(storage: PluginStorage) -> None:
    began = datetime.now(UTC) - timedelta(seconds=2)
    file = io.BytesIO(DATA)
    file.seek(500)  # it is stored from its beginning nevertheless
    await storage.put("one", file)
    await storage.put("other", io.BytesIO(b"x"))
    for offset in (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 999, len(DATA)):
        assert await read(storage, "one", offset) == DATA[offset:], offset
    answer = await storage.stored()
    assert set(answer) == {"one", "other"}
    assert all(began < time <= datetime.now(UTC) + timedelta(seconds=2) for time in answer.values())


async def test_what_is_deleted_is_gone_and_may_be_deleted_again(storage: PluginStorage) -> None:
    await storage.put("one", io.BytesIO(DATA))
    await storage.put("other", io.BytesIO(b"x"))
    await storage.delete("one")
    await storage.delete("one")
    with pytest.raises(NotFound):
        await read(storage, "one")
    with pytest.raises(NotFound):
        await read(storage, "one", CHUNK_BYTES)
    assert set(await storage.stored()) == {"other"}
    assert await read(storage, "other") == b"x"


async def test_what_breaks_while_it_is_stored_is_found_and_deleted(storage: PluginStorage) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() >= CHUNK_BYTES:
                raise OSError("the disk is broken")
            return super().read(size)

    with pytest.raises((OSError, Unavailable)):
        await storage.put("one", Broken(DATA))
    assert set(await storage.stored()) <= {"one"}
    await storage.delete("one")
    assert await storage.stored() == {}
    await storage.put("one", io.BytesIO(DATA))
    assert await read(storage, "one") == DATA


async def test_a_reader_ends_early_without_harm(storage: PluginStorage) -> None:
    await storage.put("one", io.BytesIO(DATA))
    pieces = storage.read("one")
    assert await anext(pieces) == DATA[:CHUNK_BYTES]
    await pieces.aclose()  # type: ignore[attr-defined]
    assert await read(storage, "one") == DATA


async def test_a_folder_that_cannot_be_written_is_refused_at_the_start_and_told_later(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match=r"state\.plugin_storage.*is a file"):
        FolderStorage(tmp_path / "file" / "folder").prepare()
    storage = FolderStorage(tmp_path / "folder")
    storage.prepare()
    (tmp_path / "folder").rmdir()
    for failing in (storage.put("one", io.BytesIO(b"x")), storage.stored()):
        with pytest.raises(Unavailable, match=r"state\.plugin_storage.*No such file"):
            await failing


async def test_what_is_larger_than_a_part_is_stored_whole(storage: PluginStorage) -> None:
    data = random.Random(8).randbytes(2 * PART_BYTES + 5)
    await storage.put("one", io.BytesIO(data))
    assert await read(storage, "one") == data


async def test_a_bucket_that_cannot_be_had_is_told(s3: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, endpoint in (("s3://", ""), ("s3://UPPER/x", ""), ("s3://bucket", "ftp://host")):
        with pytest.raises(InvalidArgument, match=r"state\.plugin_"):
            S3Storage.of(setting, "mine", endpoint=endpoint)
    none = S3Storage.of("s3://nosuch/x", "mine", endpoint=s3.endpoint)
    with pytest.raises((Unavailable, NotFound), match="s3://nosuch/x/mine"):
        await none.put("one", io.BytesIO(b"x"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    stranger = S3Storage.of(f"s3://{BUCKET}", "mine", endpoint=s3.endpoint)
    with pytest.raises(Unavailable, match=f"state.plugin_storage: s3://{BUCKET}/mine"):
        await stranger.stored()
