"""Opens the storage that a setting names."""

from __future__ import annotations

from pathlib import Path

from sqlmodel import select

from keelman.model.errors import InvalidArgument
from keelman.state.plugins.database_storage import DatabaseStorage
from keelman.state.plugins.files import PluginFiles, Quotas
from keelman.state.plugins.folder_storage import FolderStorage
from keelman.state.plugins.storage import PluginStorage
from keelman.state.store import Store
from keelman.state.tables import InstallationRow

DATABASE = "database"


async def opened_files(store: Store, setting: str, quotas: Quotas, *, sole: bool) -> PluginFiles:
    """The files of plugins, kept where `state.plugin_storage` says. Raises InvalidArgument for what cannot be used.

    `sole` says that no other process can use the database.
    """
    database = DatabaseStorage(store.database)
    storage: PluginStorage = database
    if setting != DATABASE:
        storage = await _elsewhere(store, setting)
    return PluginFiles(store, storage, quotas, {database.kind: database}, sole=sole)


async def _elsewhere(store: Store, setting: str) -> PluginStorage:
    async with store.database.read() as session:
        installation = (await session.exec(select(InstallationRow.uid))).one()
    if "://" in setting or not setting.strip():
        raise InvalidArgument.of("state.plugin_storage", setting, "database, or the path of a folder")
    folder = FolderStorage(Path(setting).expanduser().absolute() / installation)
    folder.prepare()
    return folder
