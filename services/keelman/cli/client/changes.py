"""Decides for `--wait` whether an update or a drain has had its effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keelman.api.connect.v1.worker_cluster_pb2 import ROLLOUT_STATE_HALTED
from keelman.api.node.v1.node_pb2 import NODE_STATE_ONLINE, NODE_STATE_UNKNOWN
from keelman.api.node.v1.workload_pb2 import WORKLOAD_GOAL_REMOVED
from keelman.cli import kinds
from keelman.cli.client.effects import detail_of
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.patience import AFTER_CHANGE_SECONDS, Patience
from keelman.cli.exits import NotReached
from keelman.cli.kinds import Kind
from keelman.cli.output.words import quantity, rollout_text
from keelman.cli.waiting import progress_line, until
from keelman.model.errors import DeadlineExceeded
from keelman.rpc.enums import state_word
from keelman.runtime.supervise import deadline

MOVED = ("worker/", "spark/@")
"""Beginnings of the names of workloads that leave a drained node: workers, and drivers of Spark clusters."""


async def wait_for_update(gateway: Gateway, kind: Kind, name: str, *, generation: int, seconds: float) -> Any:
    """Waits until a cluster matches its spec, of this generation at least, and shows its progress on stderr; returns
    the cluster.

    Raises NotReached as soon as a worker fails to come up with the change, DeadlineExceeded.
    """
    latest: Any = None
    patience = Patience(AFTER_CHANGE_SECONDS)

    async def has_effect() -> bool:
        nonlocal latest
        latest = await gateway.get(kind, name)
        line.show(f"{kind.singular}/{name} {standing(kind, latest)}")
        check_halted(kind, latest)
        patience.check(kind, name, latest)
        return latest.status.observed_generation >= generation and is_as_wanted(kind, latest)

    def late() -> DeadlineExceeded:
        text = "" if latest is None else f", but {standing(kind, latest)}"
        return DeadlineExceeded(
            f"{kind.singular}/{name} does not match its spec after {seconds:.0f} s{text}; "
            f"see `keelman describe {kind.singular} {name}`"
        )

    with progress_line() as line:
        async with deadline(seconds, late):
            await until(has_effect)
    return latest


def standing(kind: Kind, cluster: Any) -> str:
    """Returns the state of a cluster with its message, and the progress of its rollout."""
    if not (kind is kinds.WORKER_CLUSTERS and cluster.status.HasField("rollout")):
        return state_word(cluster.status) + detail_of(kind, cluster)
    status = cluster.status
    # Both messages name the worker that halts the rollout: it is shown once.
    said = status.rollout.message and status.rollout.message in status.message
    reason = f": {status.message}" if status.message and not said else ""
    workers = f"{status.ready_workers}/{status.wanted_workers} workers"
    return f"{state_word(cluster.status)} {workers}{reason}; {rollout_text(status.rollout)}"


def check_halted(kind: Kind, cluster: Any) -> None:
    """Raises NotReached if the cluster's rollout is halted."""
    if kind is kinds.WORKER_CLUSTERS and cluster.status.rollout.state == ROLLOUT_STATE_HALTED:
        raise NotReached(
            f"the change of worker-cluster/{cluster.name} has halted: {rollout_text(cluster.status.rollout)}"
        )


def is_as_wanted(kind: Kind, cluster: Any) -> bool:
    """Tells whether a cluster matches its spec; a stopped cluster always does."""
    state = state_word(cluster.status)
    if state == "STOPPED":
        return True
    if kind is kinds.WORKER_CLUSTERS:
        whole = cluster.status.ready_workers == cluster.status.wanted_workers and not cluster.status.leaving_workers
        return state == "RUNNING" and whole and not cluster.status.HasField("rollout")
    return state == "RUNNING" and not cluster.status.message  # set while a change of brokers waits


@dataclass(frozen=True, slots=True)
class Leaving:
    """The progress of a drain: the workloads to move from the node, the workloads pinned there, and the nodes that may
    take them."""

    movable: Sequence[str]
    ending: Sequence[str]
    """The movable workloads that end, since they run elsewhere already, or their cluster is deleted."""
    pinned: Sequence[str]
    takers: Sequence[str]
    """Names of nodes that take new work, or may in a moment."""
    others: Sequence[str]
    """For each other node that takes nothing, the reason, for people."""

    @property
    def stuck(self) -> bool:
        """True if a workload has to leave and no node takes it."""
        return bool(self._waiting and not self.takers)

    @property
    def _waiting(self) -> list[str]:
        return [name for name in self.movable if name not in self.ending]

    def lines(self, node: str) -> list[str]:
        """Returns the progress as lines for people."""
        lines = []
        if self.stuck:
            reason = f": {', '.join(self.others)}" if self.others else ": no other node exists"
            lines.append(f"no other node takes the workloads that leave{reason}; stays: {', '.join(self._waiting)}")
        elif self.movable:
            lines.append(f"to leave: {', '.join(self.movable)}")
        if self.pinned:
            lines.append(f"pinned to node {node}, and so stays: {', '.join(self.pinned)}")
        return lines


async def leaving(gateway: Gateway, name: str) -> Leaving:
    """Returns the workloads that keep a node from being empty."""
    nodes = await gateway.list(kinds.NODES)
    here = next(node for node in nodes if node.name == name)
    pinned = set(here.status.pinned_workloads)
    carried = [w for w in await gateway.list(kinds.WORKLOADS) if w.node == name and w.name.startswith(MOVED)]
    movable = sorted((w for w in carried if w.name not in pinned), key=lambda w: w.name)
    others = [node for node in nodes if node.name != name]
    return Leaving(
        movable=[node.name for node in movable],
        ending=[node.name for node in movable if node.goal == WORKLOAD_GOAL_REMOVED],
        pinned=sorted(pinned),
        takers=[other.name for other in others if not _why_not(other)],
        others=[f"{other.name} is {_why_not(other)}" for other in others if _why_not(other)],
    )


async def wait_for_drain(gateway: Gateway, name: str, *, seconds: float) -> Leaving:
    """Waits until no movable workload is on a node; returns the workloads that stay. Raises NotReached if no other node
    takes the movable workloads, DeadlineExceeded."""
    latest: Leaving | None = None

    async def has_left() -> bool:
        nonlocal latest
        latest = await leaving(gateway, name)
        if latest.stuck:
            raise NotReached(f"node {name} is not drained: " + "; ".join(latest.lines(name)))
        line.show(f"node/{name}: {quantity(len(latest.movable), 'workload')} to leave")
        return not latest.movable

    def late() -> DeadlineExceeded:
        left = "" if latest is None else ": " + "; ".join(latest.lines(name))
        return DeadlineExceeded(f"node {name} is not drained after {seconds:.0f} s{left}; see `keelman get wc -o wide`")

    with progress_line() as line:
        async with deadline(seconds, late):
            await until(has_left)
    assert latest is not None
    return latest


def _why_not(node: Any) -> str:
    """Returns why a node takes no new workloads; empty if it takes some, or may in a moment."""
    if node.spec.draining:
        return "draining"
    if node.spec.cordoned:
        return "cordoned"
    healthy = node.status.state in (NODE_STATE_ONLINE, NODE_STATE_UNKNOWN)
    return "" if healthy else state_word(node.status)
