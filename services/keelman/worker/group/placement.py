"""Decides which workers may run a connector: its `keelman.placement.labels`, their `keelman.labels`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from keelman.connect.config.copying_keys import LABELS, WORKER_LABELS
from keelman.model.errors import InvalidArgument
from keelman.model.rules.labels import labels_of

Labels: TypeAlias = Mapping[str, str]
CONNECTOR_KEY = LABELS.name
# What nobody has: the name is none that can be written.
NOBODY: Labels = {"": ""}


def wants_of(placements: Mapping[str, str]) -> dict[str, Labels]:
    """Connector to labels, for those that ask for any, from the texts. One that is not legal matches nobody."""
    wants: dict[str, Labels] = {}
    for connector, text in placements.items():
        try:
            labels: Labels = labels_of(text, key=CONNECTOR_KEY)
        except InvalidArgument:
            labels = NOBODY
        if labels:
            wants[connector] = labels
    return wants


def why_unplaced(text: str, members: Iterable[Labels]) -> str:
    """For people: why no worker has a connector that asks for these labels."""
    try:
        labels_of(text, key=CONNECTOR_KEY)
    except InvalidArgument as error:
        return error.message
    has = sorted({",".join(f"{k}={v}" for k, v in sorted(labels.items())) or "none" for labels in members})
    return (
        f"No worker of the group may have it: {CONNECTOR_KEY} is {text}, the workers' labels are "
        f"{'; '.join(has) or 'unknown'}: set {WORKER_LABELS} in a worker's properties, or change {CONNECTOR_KEY}"
    )
