"""Checks the owner of a broker's folders, and formats them once, with the same files that Kafka's own tool writes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.model.cluster import new_cluster_id
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.runtime.home import sync_folder, write_file

META = "meta.properties"
"""The file with the owner of a folder."""
BOOTSTRAP = "bootstrap.checkpoint"
"""The initial metadata of a new cluster: a snapshot in Kafka's form."""
MODE = 0o640
"""The mode of both files: they contain no secret, and the group may make backups."""


@dataclass(frozen=True, slots=True)
class FolderOwner:
    """The owner of a formatted folder, from the folder's own file."""

    cluster_id: str
    node_id: int


Formatter = Callable[[str], Awaitable[None]]


def owner_of(data: Path, setting: str = "home") -> FolderOwner | None:
    """Returns the owner of a folder; None if it is not (or only half) formatted. `setting` names it.

    Raises FailedPrecondition if it holds partitions without a readable owner: formatting would detach them from it.
    """
    properties: dict[str, str] = {}
    file = data / META
    try:
        lines = file.read_text(encoding="latin-1").splitlines()
        properties = {
            k.strip(): v.strip() for k, _, v in (line.partition("=") for line in lines) if not k.startswith("#")
        }
    except FileNotFoundError:
        pass
    except OSError as error:
        raise FailedPrecondition(f"broker.{setting}: {file} cannot be read: {error.strerror}") from None
    cluster_id, node_id = properties.get("cluster.id", ""), properties.get("node.id", "")
    if cluster_id and node_id.isdigit():
        return FolderOwner(cluster_id, int(node_id))
    segments = sorted(data.glob("*/*.log"))
    if any(s.stat().st_size for s in segments):
        raise FailedPrecondition(
            f"broker.{setting}: {data} holds Kafka partitions ({segments[0].parent.name} and maybe more) but {META} is "
            "missing or damaged: restore it, or move the folder away",
            reason="DATA_WITHOUT_OWNER",
        )
    return None


async def ensure_format(data: Path, *, cluster_id: str, node_id: int, format: Formatter) -> FolderOwner:
    """Formats the folder if it is unformatted, or only half formatted; returns its owner.

    `format` is given the cluster id. It writes the owner file last and by renaming, so a folder without one was not
    finished. Raises FailedPrecondition when the folder is another cluster's or another broker's, InvalidArgument for an
    illegal cluster id.
    """
    if cluster_id:
        check_cluster_id(cluster_id)
    owner = owner_of(data)
    if owner is None:
        data.mkdir(parents=True, exist_ok=True)
        (data / META).unlink(missing_ok=True)
        await format(cluster_id or new_cluster_id())
        owner = owner_of(data)
        if owner is None:
            raise FailedPrecondition(f"broker.home: formatting left no {META} in {data}")
    _check_owner(data, owner, FolderOwner(cluster_id or owner.cluster_id, node_id))
    return owner


def check_folders(folders: Sequence[Path], owner: FolderOwner) -> list[Path]:
    """Returns a broker's unformatted folders; the first of `folders` is the one in its home.

    Raises FailedPrecondition if a folder has another owner, or holds partitions without a readable owner.
    """
    left = []
    for n, folder in enumerate(dict.fromkeys(folders)):
        setting = "data_folders" if n else "home"
        folder_owner = owner_of(folder, setting)
        if folder_owner is None:
            left.append(folder)
        else:
            _check_owner(folder, folder_owner, owner, setting)
    return left


def write_format(folders: Sequence[Path], owner: FolderOwner, bootstrap: bytes) -> None:
    """Formats a broker's folders as Kafka's storage tool does, durably; `bootstrap` becomes their `BOOTSTRAP`.

    Folders that the owner has already stay unchanged. The first holds Kafka's metadata: if this call is interrupted
    after it, Kafka itself writes the owner files of the others. Raises FailedPrecondition as `check_folders`, before
    any write, and OSError.
    """
    for folder in check_folders(folders, owner):
        write_file(folder / BOOTSTRAP, bootstrap, mode=MODE)
        sync_folder(folder)  # an owner file guarantees that all else exists, also after a power cut
        write_file(folder / META, _meta(owner).encode(), mode=MODE)
        sync_folder(folder)


def _meta(owner: FolderOwner) -> str:
    """Returns the text of an owner file. By the random directory id controllers tell the folder from others."""
    lines = (
        f"node.id={owner.node_id}",
        f"directory.id={new_cluster_id()}",
        "version=1",
        f"cluster.id={owner.cluster_id}",
    )
    return "\n".join(lines) + "\n"


def _check_owner(folder: Path, actual: FolderOwner, expected: FolderOwner, setting: str = "home") -> None:
    if actual.cluster_id != expected.cluster_id:
        raise FailedPrecondition(
            f"broker.{setting}: {folder} belongs to the Kafka cluster {actual.cluster_id}, not to "
            f"{expected.cluster_id}: give another folder, or cluster_id = {actual.cluster_id}",
            reason="FOREIGN_CLUSTER",
            metadata={"found": actual.cluster_id, "wanted": expected.cluster_id},
        )
    if actual.node_id != expected.node_id:
        raise FailedPrecondition(
            f"broker.{setting}: {folder} belongs to broker {actual.node_id} of the cluster {actual.cluster_id}, "
            f"not to broker {expected.node_id}: give another folder, or node_id = {actual.node_id}",
            reason="FOREIGN_NODE",
            metadata={"found": str(actual.node_id), "wanted": str(expected.node_id)},
        )


def check_cluster_id(text: str) -> None:
    """Raises InvalidArgument unless the text is 16 bytes in URL-safe base64 without padding."""
    try:
        legal = len(text) == 22 and len(base64.b64decode(text + "==", altchars=b"-_", validate=True)) == 16
    except (binascii.Error, ValueError):
        legal = False
    if not legal or text.startswith("-"):
        raise InvalidArgument.of(
            "broker.cluster_id", text, "16 bytes as 22 characters of A-Z a-z 0-9 - _, not beginning with -; or empty"
        )
