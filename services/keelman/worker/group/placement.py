"""Decides which workers may run a connector: its `keelman.placement.labels`, their `keelman.labels`. Explains why none
may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from keelman.connect.config.copying_keys import LABELS, WORKER_LABELS
from keelman.model.errors import InvalidArgument
from keelman.model.rules.labels import labels_of

Labels: TypeAlias = Mapping[str, str]
CONNECTOR_KEY = LABELS.name
# Labels that no worker has: the name cannot be written.
NOBODY: Labels = {"": ""}
MOST_NAMED = 3


def wants_of(placements: Mapping[str, str]) -> dict[str, Labels]:
    """Returns connector to labels, for those that require any, from the texts. An illegal text matches no worker."""
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
    """Returns, for people, why no worker has a connector that requires these labels."""
    try:
        labels_of(text, key=CONNECTOR_KEY)
    except InvalidArgument as error:
        return error.message
    has = sorted({",".join(f"{k}={v}" for k, v in sorted(labels.items())) or "none" for labels in members})
    return (
        f"No worker of the group may have it: {CONNECTOR_KEY} is {text}, the workers' labels are "
        f"{'; '.join(has) or 'unknown'}: set {WORKER_LABELS} in a worker's properties, or change {CONNECTOR_KEY}"
    )


def why_none_fit(unfit: Mapping[str, str]) -> str:
    """Returns, for people, why no worker runs any tasks, from each worker_id's own reason."""
    named = [f"{worker}: {reason}" for worker, reason in sorted(unfit.items())[:MOST_NAMED]]
    more = len(unfit) - len(named)
    return f"No worker of the group can run it now: {'; '.join(named)}{f'; and {more} more' if more else ''}"
