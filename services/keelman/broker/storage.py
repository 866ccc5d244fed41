"""Checks whose data a broker's folder holds, and formats it once with Kafka's own storage tool."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from keelman.model.cluster import new_cluster_id
from keelman.model.errors import FailedPrecondition, InvalidArgument

META = "meta.properties"


@dataclass(frozen=True, slots=True)
class Owner:
    """What a formatted folder says about itself."""

    cluster_id: str
    node_id: int


Formatter = Callable[[str], Awaitable[None]]


def owner_of(data: Path) -> Owner | None:
    """Who the folder was formatted for; None when it is not (or only half) formatted.

    Raises FailedPrecondition when it holds partitions without a readable owner: formatting it would disown them.
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
        raise FailedPrecondition(f"broker.home: {file} cannot be read: {error.strerror}") from None
    cluster_id, node_id = properties.get("cluster.id", ""), properties.get("node.id", "")
    if cluster_id and node_id.isdigit():
        return Owner(cluster_id, int(node_id))
    segments = sorted(data.glob("*/*.log"))
    if any(s.stat().st_size for s in segments):
        raise FailedPrecondition(
            f"broker.home: {data} holds Kafka partitions ({segments[0].parent.name} and maybe more) but {META} is "
            "missing or damaged: restore it, or move the folder away",
            reason="DATA_WITHOUT_OWNER",
        )
    return None


async def formatted(data: Path, *, cluster_id: str, node_id: int, format: Formatter) -> Owner:
    """Formats the folder if it never was, or only half; returns whose it is.

    `format` is given the cluster id. The tool writes the owner file last and by renaming, so a folder without one was
    not finished. Raises FailedPrecondition when the folder is another cluster's or another broker's, InvalidArgument
    for an illegal cluster id.
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
            raise FailedPrecondition(f"broker.home: Kafka's storage tool left no {META} in {data}")
    if cluster_id and owner.cluster_id != cluster_id:
        raise FailedPrecondition(
            f"broker.home: {data} belongs to the Kafka cluster {owner.cluster_id}, not to {cluster_id}: "
            f"give another home, or cluster_id = {owner.cluster_id}",
            reason="FOREIGN_CLUSTER",
            metadata={"found": owner.cluster_id, "wanted": cluster_id},
        )
    if owner.node_id != node_id:
        raise FailedPrecondition(
            f"broker.home: {data} belongs to broker {owner.node_id} of the cluster {owner.cluster_id}, "
            f"not to broker {node_id}: give another home, or node_id = {owner.node_id}",
            reason="FOREIGN_NODE",
            metadata={"found": str(owner.node_id), "wanted": str(node_id)},
        )
    return owner


def check_cluster_id(text: str) -> None:
    """Raises InvalidArgument unless it is 16 bytes in URL-safe base64 without padding."""
    try:
        legal = len(text) == 22 and len(base64.b64decode(text + "==", altchars=b"-_", validate=True)) == 16
    except (binascii.Error, ValueError):
        legal = False
    if not legal or text.startswith("-"):
        raise InvalidArgument.of(
            "broker.cluster_id", text, "16 bytes as 22 characters of A-Z a-z 0-9 - _, not beginning with -; or empty"
        )
