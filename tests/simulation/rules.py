"""The rules that hold for a plane at every moment, under any disturbance; each has a name, by which it is reported.

`Rules` observes: it learns of each commit, of each process that hosts start and end, and of the answers to users.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.model.cluster import ClusterGoal, WorkerCluster
from keelman.model.node import Node, NodeState
from keelman.model.workload import WorkerSpec, Workload, WorkloadKind
from keelman.state.planning.places import has_labels
from keelman.state.resources.snapshot import BROKER_CLUSTER, NODE, WORKER_CLUSTER, WORKLOAD
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Change
from support.fake_time import FakeTimeLoop

NAMES = {
    "started-twice": "no workload has two processes in one generation, and none starts on two nodes in one",
    "offline-though-heard": "no node is judged offline that a state service still hears",
    "acknowledged": "what was acknowledged is there, and what nobody asked for is not",
    "ports": "no port of a host is given twice",
    "placed": "new workers go where they may be, and leave only where they may not",
    "generations": "what an agent is told has a new generation with each change, and none goes back",
    "revisions": "every state service shows what is stored, and no revision goes back",
    "one-leader": "nobody plans or judges unless he leads",
    "converges": "when nothing is disturbed any more, what is wanted comes true",
    "no-crash": "no part of keelman fails in a way that it does not know",
}
NOUNS = (NODE, BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD)
HEARD_SECONDS = (10.0, 4.0)
"""A node that was heard between so many seconds ago may not be judged offline: later messages may have come too late
for the judgement.
"""
EXCHANGED_SECONDS = 3.0
"""One state service learns of another's messages within this time."""
CUT_OFF_SECONDS = (2.5, 1.0)
"""The same for a service that may be cut off from the others: by then it must have closed its agents' sessions."""


@dataclass(slots=True)
class Broken:
    """A rule that did not hold."""

    rule: str
    at: float
    what: str

    def __str__(self) -> str:
        return f"{self.at:9.3f} s  {self.rule}: {self.what} ({NAMES[self.rule]})"


@dataclass(slots=True)
class Rules:
    """Observes the plane and checks the rules."""

    loop: FakeTimeLoop
    is_disturbed: bool = True
    broken: list[Broken] = field(default_factory=list)
    trace: list[tuple[float, str, str]] = field(default_factory=list)
    """The events, for people and to compare two runs."""
    truth: dict[str, dict[str, Any]] = field(default_factory=lambda: {noun: {} for noun in NOUNS})
    revision: int = 0
    epoch: int = 0
    """The epoch of the newest leader."""
    asked: dict[tuple[str, str], set[Any]] = field(default_factory=dict)
    """By noun and name: the possible states of a resource that users change, as `asked_of` returns them."""
    blind: dict[str, float] = field(default_factory=dict)
    """Until when a state service may lack the messages that others have read."""
    _seen: dict[str, int] = field(default_factory=dict)
    _alive: dict[tuple[str, str, int], str] = field(default_factory=dict)
    _placed: dict[tuple[str, str, int], str] = field(default_factory=dict)
    _heard: dict[str, deque[tuple[float, str]]] = field(default_factory=dict)

    def fail(self, rule: str, what: str) -> None:
        """Records that a rule did not hold."""
        assert rule in NAMES
        self.broken.append(Broken(rule, self.loop.time(), what))

    def note(self, what: str, words: str) -> None:
        """Records an event."""
        self.trace.append((round(self.loop.time(), 6), what, words))

    def leads(self, name: str, epoch: int, leads: bool) -> None:
        """A state service begins or ceases to lead."""
        self.note("leads" if leads else "leads-no-more", f"{name} epoch {epoch}")
        self.epoch = max(self.epoch, epoch)

    def led(self, name: str, epoch: int) -> None:
        """A state service is about to store changes that only the leader may store."""
        if epoch < self.epoch:
            self.fail("one-leader", f"{name} stores as the leader of epoch {epoch}, and now is {self.epoch}")

    def died(self, name: str) -> None:
        """A state service has died."""
        self._seen.pop(name, None)

    def loaded(self, name: str, store: ResourceStore) -> None:
        """A state service has read the whole database."""
        self._take(
            name,
            store,
            {(n, item): store.snapshot.resources(n).get(item) for n in NOUNS for item in self._all(store, n)},
        )

    def _all(self, store: ResourceStore, noun: str) -> set[str]:
        return self.truth[noun].keys() | store.snapshot.resources(noun).keys()

    def told(self, name: str, store: ResourceStore, changes: Sequence[Change]) -> None:
        """A state service learns of changes that it or another has stored."""
        if store.revision < self._seen.get(name, 0):
            self.fail("revisions", f"{name} went back from {self._seen[name]} to {store.revision}")
        self._seen[name] = store.revision
        self._take(name, store, {(c.noun, c.name): c.new for c in changes if c.noun in NOUNS})

    def _take(self, name: str, store: ResourceStore, news: dict[tuple[str, str], Any]) -> None:
        if store.revision < self.revision:
            return  # a late message
        is_new = store.revision > self.revision
        self.revision = store.revision
        changed = []
        for (noun, item), new in sorted(news.items()):
            old = self.truth[noun].get(item)
            if old == new:
                continue
            if not is_new:
                self.fail("revisions", f"{name} shows {noun} {item} otherwise at {store.revision}: {new}, not {old}")
            changed.append((old, new))
            if new is None:
                del self.truth[noun][item]
            else:
                self.truth[noun][item] = new
        for old, new in changed:
            self._check(name, old, new)
        hosts = {_host(self.truth[NODE].get(w.node)) for pair in changed for w in pair if isinstance(w, Workload)}
        if hosts:
            self._check_ports(hosts)

    def _check(self, name: str, old: Any, new: Any) -> None:
        single_old = old if new is None else new
        if isinstance(single_old, Node):
            self._check_node(name, old, new)
        elif isinstance(single_old, Workload):
            self._check_workload(old, new)
        self.note("stored", _words(single_old, gone=new is None))
        key = (single_old.NOUN, single_old.name)
        if key in self.asked and (result := asked_of(new)) not in self.asked[key]:
            self.fail("acknowledged", f"{single_old.NOUN} {single_old.name} is {result}, asked was {self.asked[key]}")

    def _check_node(self, name: str, old: Node | None, new: Node | None) -> None:
        if new is None or old is None or new.state is not NodeState.OFFLINE or old.state is NodeState.OFFLINE:
            return
        now, beats = self.loop.time(), self._heard.get(new.name, ())
        present = HEARD_SECONDS[0] - EXCHANGED_SECONDS
        for at, by in beats:
            if by == name:
                long_ago, lately = HEARD_SECONDS
            elif now >= max(self.blind.get(by, 0.0), self.blind.get(name, 0.0)):
                long_ago, lately = present, HEARD_SECONDS[1]
            elif any(item == by and now - present < before <= now - HEARD_SECONDS[1] for before, item in beats):
                long_ago, lately = CUT_OFF_SECONDS
            else:
                continue  # after a long silence: the others have yet to learn of it
            if now - long_ago < at <= now - lately:
                self.fail("offline-though-heard", f"{new.name}: {by} heard it {now - at:.3f} s ago, {name} stored it")
                return

    def _check_workload(self, old: Workload | None, new: Workload | None) -> None:
        if new is None:
            return
        if old is None or old.uid != new.uid:
            if new.generation != 1:
                self.fail("generations", f"{new.name} begins with {new.generation}")
            self._check_place(new)
            return
        told = (old.node, old.goal, old.force, _process_spec(old)) != (
            new.node,
            new.goal,
            new.force,
            _process_spec(new),
        )
        # It may skip some: the agent may know a newer generation of a workload that was forgotten while it was offline.
        if new.generation < old.generation or (told and new.generation == old.generation):
            self.fail("generations", f"{new.name}: {old.generation} to {new.generation}; told otherwise: {told}")
        if new.node != old.node:
            self._check_move(old, new)
            self._check_place(new)

    def _check_move(self, old: Workload, new: Workload) -> None:
        cluster = self.truth[WORKER_CLUSTER].get(new.cluster)
        left = self.truth[NODE].get(old.node)
        if new.kind is not WorkloadKind.WORKER or cluster is None or cluster.spec.nodes:
            self.fail("placed", f"{new.name} is pinned and moved from {old.node} to {new.node}")
        elif left is not None and not (
            left.state is NodeState.OFFLINE or left.spec.draining or not has_labels(left, cluster.spec.node_selector)
        ):
            self.fail("placed", f"{new.name} left {old.node}, where it may be, for {new.node}")

    def _check_place(self, new: Workload) -> None:
        node = self.truth[NODE].get(new.node)
        if node is None or node.state is NodeState.EXPECTED:
            self.fail("placed", f"{new.name} is on {new.node}, which is not there")
            return
        if new.kind is not WorkloadKind.WORKER:
            return
        cluster = self.truth[WORKER_CLUSTER].get(new.cluster)
        if node.spec.cordoned or node.spec.draining:
            self.fail("placed", f"{new.name} is new on {new.node}, which takes nothing new")
        elif (
            cluster is not None
            and not cluster.spec.nodes
            and not (node.state is NodeState.ONLINE and has_labels(node, cluster.spec.node_selector))
        ):
            self.fail("placed", f"{new.name} is new on {new.node}: {node.state}, {dict(node.spec.labels)}")

    def _check_ports(self, hosts: set[str]) -> None:
        owners: dict[tuple[str, int], str] = {}
        for workload in self.truth[WORKLOAD].values():
            host = _host(self.truth[NODE].get(workload.node))
            if host not in hosts:
                continue
            for port in workload.ports:
                other = owners.setdefault((host, port), workload.name)
                if other != workload.name:
                    self.fail("ports", f"{workload.name} and {other} both have {host}:{port}")

    def check_asked(self) -> None:
        """Checks that the last changes of users are stored."""
        for (noun, name), outcomes in self.asked.items():
            if (result := asked_of(self.truth[noun].get(name))) not in outcomes:
                self.fail("acknowledged", f"{noun} {name} is {result} in the end, asked was {outcomes}")

    def heard(self, node: str, state: str) -> None:
        """A state service has read a message of a node."""
        beats = self._heard.setdefault(node, deque(maxlen=16))
        beats.append((self.loop.time(), state))

    def started(self, node: str, name: str, uid: str, generation: int, present: Any) -> None:
        """A host starts a process."""
        self.note("started", f"{name} generation {generation} on {node}")
        key = (name, uid, generation)
        if present is not None:
            self.fail("started-twice", f"{name} runs on {node} already, in generation {present.generation}")
        if key in self._alive:
            self.fail(
                "started-twice", f"{name} generation {generation} starts on {node} and runs on {self._alive[key]}"
            )
        if self._placed.setdefault(key, node) != node:
            self.fail("started-twice", f"{name} generation {generation} starts on {self._placed[key]} and on {node}")
        self._alive[key] = node

    def ended(self, node: str, name: str, uid: str, generation: int) -> None:
        """A process has ended."""
        self.note("ended", f"{name} generation {generation} on {node}")
        self._alive.pop((name, uid, generation), None)


def asked_of(resource: Any) -> Any:
    """The fields of a resource that users decide; None if the resource does not exist or is being deleted."""
    match resource:
        case WorkerCluster() if resource.goal is not ClusterGoal.DELETED:
            spec = resource.spec
            return str(resource.goal), spec.count, spec.properties.get("x", "")
        case Node():
            return resource.spec.cordoned, resource.spec.draining
        case _:
            return None


def _host(node: Node | None) -> str:
    return "" if node is None else node.host


def _process_spec(workload: Workload) -> Any:
    spec = workload.spec
    return (spec.properties, spec.spark_address, spec.port, spec.restart) if isinstance(spec, WorkerSpec) else spec


def _words(value: Any, *, gone: bool) -> str:
    if gone:
        return f"{value.NOUN} {value.name} is gone"
    match value:
        case Node():
            return (
                f"node {value.name} {value.state} session {value.session} {value.spec.cordoned} {value.spec.draining}"
            )
        case Workload():
            state = "" if value.status is None else f" {value.status.state} of {value.status.generation}"
            return f"{value.name} on {value.node} {value.goal} generation {value.generation}{state}"
        case WorkerCluster():
            return (
                f"worker cluster {value.name} {asked_of(value)} {value.status.state} ready {value.status.ready_workers}"
            )
        case _:
            return f"{value.NOUN} {value.name}"
