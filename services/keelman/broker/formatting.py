"""Formats the folders of a new broker; Kafka's storage tool runs only for the first one.

The tool writes two files in each folder: its owner, and the levels of Kafka's features in a new cluster
(`storage.META`, `storage.BOOTSTRAP`). The levels are Kafka's own and follow from its version alone, since the voters of
our clusters are in their properties; the rest of the file are times that are never read. So the file of the tool's
first run is kept beside the jars, which saves every later broker a Java process: 2 s of a processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keelman.broker.jvm import BrokerFiles, run_storage_tool
from keelman.broker.settings import Settings
from keelman.broker.storage import BOOTSTRAP, FolderOwner, check_folders, write_format
from keelman.model.errors import Unavailable
from keelman.runtime.home import cache_folder, write_file
from keelman.runtime.java.installation import Java
from keelman.runtime.logs.logging import get_logger

log = get_logger()

UNSTABLE = "unstable.feature.versions.enable"
"""With this Kafka property a new cluster begins with other levels."""


def kept_bootstrap(jars: Sequence[Path]) -> Path:
    """Returns the path of the kept bootstrap file for the version of these jars."""
    return cache_folder() / "formats" / f"{jars[0].parent.name}.checkpoint"


async def format_storage(
    java: Java, jars: Sequence[Path], settings: Settings, files: BrokerFiles, cluster_id: str
) -> None:
    """Formats the unformatted folders in a broker's server.properties.

    Raises FailedPrecondition if a folder belongs to another cluster or broker, Unavailable if the formatting fails.
    """
    kept_file, usual = kept_bootstrap(jars), UNSTABLE not in settings.properties
    folders, owner = (files.data, *map(Path, settings.data_folders)), FolderOwner(cluster_id, settings.node_id)
    bootstrap = _read(kept_file) if usual else b""
    if not bootstrap:
        check_folders(folders, owner)  # the tool would format a folder whose partitions have lost their owner
        await run_storage_tool(java, jars, files, cluster_id)
        if usual:
            _keep(files.data / BOOTSTRAP, kept_file)
        return
    try:
        write_format(folders, owner, bootstrap)
    except OSError as error:
        where = error.filename or files.data
        raise Unavailable(f"formatting {where} failed: {error.strerror}", reason="FORMAT_FAILED") from None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _keep(new_path: Path, kept_path: Path) -> None:
    """Keeps the bootstrap file. A read-only cache is no failure of the broker: the next broker uses the tool again."""
    try:
        write_file(kept_path, new_path.read_bytes(), mode=0o644)
    except OSError as error:
        log.warning("bootstrap_not_kept", error=str(error))
