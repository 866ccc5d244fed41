"""Decides for `--wait` when to give up: a cluster or worker is stuck that cannot start without a further change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from keelman.api.node.v1.workload_pb2 import WORKLOAD_STATE_FAILED
from keelman.cli import kinds
from keelman.cli.exits import NotReached
from keelman.cli.kinds import Kind
from keelman.model.workload import LASTING

AFTER_CHANGE_SECONDS = 1.0
"""How long the state before a change may still be shown: the planner reads a change a moment after its answer."""


def why_stuck(kind: Kind, resource: Any) -> str:
    """Returns why a cluster or a worker cannot come up, however long one waits; empty if it can."""
    if kind is kinds.WORKERS:
        process = resource.process
        lasts = process.state == WORKLOAD_STATE_FAILED and process.reason in LASTING
        return process.message or process.reason if lasts else ""
    if kind in (kinds.WORKER_CLUSTERS, kinds.BROKER_CLUSTERS) and resource.status.stuck:
        return resource.status.message or "it failed"
    return ""


class Patience:
    """Ends once the same reason has been shown for `seconds`."""

    def __init__(self, seconds: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._why, self._since = "", 0.0

    def check(self, kind: Kind, name: str, resource: Any) -> None:
        """Raises NotReached once the resource has been stuck for the same reason for `seconds`."""
        reason = why_stuck(kind, resource)
        if reason != self._why:
            self._why, self._since = reason, self._clock()
        if reason and self._clock() - self._since >= self._seconds:
            raise NotReached(f"{kind.singular}/{name} does not come up: {reason}")
