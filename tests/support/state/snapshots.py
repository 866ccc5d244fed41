"""Snapshots of the cluster state as tests write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.state.resources.snapshot import Snapshot


def snapshot_of(*named: Mapping[str, Any], **more: Mapping[str, Any]) -> Snapshot:
    """A snapshot with these resources, each kind's by their names."""
    snapshot = Snapshot()
    snapshot.fill([item for kind in (*named, *more.values()) for item in kind.values()])
    return snapshot
