"""The remains of plugins' files that killed processes left are deleted, and nothing else."""

import io
from datetime import timedelta
from pathlib import Path

import pytest

from keelman.state.nouns import plugin as plugins
from keelman.state.plugins.database_storage import DatabaseStorage
from keelman.state.plugins.files import ORPHAN_SECONDS, PluginFiles, Quotas, Received
from keelman.state.plugins.folder_storage import FolderStorage
from keelman.state.resources.store import ResourceStore
from keelman.workers.plugins.inspection import inspect
from support.eventually import eventually
from support.state.stores import open_store
from support.state.uploads import jar

pytestmark = pytest.mark.component
QUOTAS = Quotas(1 << 30, 1 << 30)


@pytest.fixture(params=["database", "folder"])
async def world(request, tmp_path, url):
    async with open_store(url, key_file=tmp_path / "secrets.key") as store:
        storage = DatabaseStorage(store.database)
        if request.param == "folder":
            storage = FolderStorage(tmp_path / "shared")
            storage.prepare()
        yield store, storage, tmp_path


async def create(store: ResourceStore, storage, tmp_path: Path) -> str:
    """Creates a plugin with its file."""
    data, path = jar(100), tmp_path / "acme-1.jar"
    path.write_bytes(data)
    received = Received(io.BytesIO(data), len(data), "0" * 64, "0" * 32)
    plugin = plugins.made_of(plugins.pb.UploadHeader(file_name=path.name), received, inspect(path), storage.kind)
    await storage.put(plugin.uid, received.file)
    async with store.write() as tx:
        plugins.create(tx, plugin, QUOTAS)
    return plugin.uid


async def test_the_first_sweep_of_a_database_of_ones_own_takes_all_that_is_nobodys(world) -> None:
    store, storage, tmp_path = world
    uid = await create(store, storage, tmp_path)
    await storage.put("orphan", io.BytesIO(b"x"))
    files = PluginFiles(store, storage, QUOTAS, tmp_path, sole=True)
    await files.sweep()
    assert set(await storage.stored()) == {uid}
    await storage.put("late", io.BytesIO(b"x"))
    await files.sweep()
    assert set(await storage.stored()) == {uid, "late"}, "later ones belong to a present writer"


async def test_where_others_write_only_what_is_old_is_taken(world) -> None:
    store, storage, tmp_path = world
    uid = await create(store, storage, tmp_path)
    await storage.put("orphan", io.BytesIO(b"x"))
    files = PluginFiles(store, storage, QUOTAS, tmp_path, sole=False)
    await files.sweep()
    assert set(await storage.stored()) == {uid, "orphan"}
    present, store.database.clock = store.database.clock, lambda: present() + timedelta(seconds=ORPHAN_SECONDS + 5)
    await files.sweep()
    assert set(await storage.stored()) == {uid}


async def test_what_is_being_stored_is_left_and_goes_when_no_plugin_came_of_it(world) -> None:
    store, storage, tmp_path = world
    files = PluginFiles(store, storage, QUOTAS, tmp_path, sole=True)
    async with files.stored("coming", io.BytesIO(b"x")):
        await files.sweep()
        assert set(await storage.stored()) == {"coming"}

    async def gone() -> bool:
        return await storage.stored() == {}

    await eventually(gone)
    await files.close()
