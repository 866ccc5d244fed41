"""Opens the storage that a setting names."""

from __future__ import annotations

from pathlib import Path

from sqlmodel import select

from keelman.model.errors import InvalidArgument
from keelman.runtime.home import writable
from keelman.state.database.tables import InstallationRow
from keelman.state.plugins.database_storage import DatabaseStorage
from keelman.state.plugins.files import PluginFiles, Quotas
from keelman.state.plugins.folder_storage import FolderStorage
from keelman.state.plugins.s3_storage import S3Storage
from keelman.state.plugins.storage import PluginStorage
from keelman.state.resources.store import ResourceStore
from keelman.state.settings import Settings

DATABASE = "database"


async def open_files(store: ResourceStore, settings: Settings) -> PluginFiles:
    """Opens the storage of `state.plugin_storage` for the files of plugins. Raises InvalidArgument for a place that
    cannot be used, and FailedPrecondition if an extra that it needs is not installed."""
    database = DatabaseStorage(store.database)
    storage: PluginStorage = database
    if settings.plugin_storage != DATABASE:
        storage = await _elsewhere(store, settings)
    quotas = Quotas(settings.plugin_max_bytes, settings.plugins_max_bytes)
    scratch = settings.folder.uploads
    writable("state.home", scratch, private=True)
    return PluginFiles(store, storage, quotas, scratch, {database.kind: database}, sole=store.database.is_sole)


async def _elsewhere(store: ResourceStore, settings: Settings) -> PluginStorage:
    setting = settings.plugin_storage
    async with store.database.read() as session:
        installation = (await session.exec(select(InstallationRow.uid))).one()
    if setting.startswith("s3://"):
        return S3Storage.of(
            setting, installation, endpoint=settings.plugin_s3_endpoint, region=settings.plugin_s3_region
        )
    if "://" in setting or not setting.strip():
        raise InvalidArgument.of(
            "state.plugin_storage", setting, "database, the path of a folder, or s3://bucket/prefix"
        )
    folder = FolderStorage(Path(setting).expanduser().absolute() / installation)
    folder.prepare()
    return folder
