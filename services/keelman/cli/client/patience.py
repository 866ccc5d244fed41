"""Decides for `--wait` when waiting is no help: what it waits for does not come up until somebody changes something."""

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
"""So long what was before a change may still be shown: the planner takes up a change a moment after its answer."""


def why_stuck(kind: Kind, found: Any) -> str:
    """Why a cluster or a worker does not come up, whatever is waited for; empty where it may."""
    if kind is kinds.WORKERS:
        process = found.process
        lasts = process.state == WORKLOAD_STATE_FAILED and process.reason in LASTING
        return process.message or process.reason if lasts else ""
    if kind in (kinds.WORKER_CLUSTERS, kinds.BROKER_CLUSTERS) and found.status.stuck:
        return found.status.message or "it failed"
    return ""


class Patience:
    """Ends with the same reason shown for `seconds`."""

    def __init__(self, seconds: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._why, self._since = "", 0.0

    def check(self, kind: Kind, name: str, found: Any) -> None:
        """Raises NotReached."""
        why = why_stuck(kind, found)
        if why != self._why:
            self._why, self._since = why, self._clock()
        if why and self._clock() - self._since >= self._seconds:
            raise NotReached(f"{kind.singular}/{name} does not come up: {why}")
