"""Plans the brokers of managed clusters. Pure.

A broker belongs to its node: it keeps its number, and once it has data its ports. Controllers are chosen with the first
plan; brokers added later are broker only. A cordoned node gets no new broker; the others wait for that node only while
there are too few controllers. Running brokers are changed one at a time, the next when all run again and every
partition is in sync; brokers that do not run are changed at once, since no client misses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from keelman.model.cluster import BrokerCluster, BrokerTls, ClusterGoal, ExternalBrokers, ManagedBrokers
from keelman.model.workload import BrokerSpec, Goal, ProcessState, Workload, WorkloadKind, broker_name, joined_address
from keelman.state.kafka.access_rules import broker_properties
from keelman.state.planning import kept_brokers
from keelman.state.planning.draft import Draft, NoPort, ports_taken


def plan_brokers(draft: Draft, cluster: BrokerCluster) -> bool:
    """Plans one broker cluster; returns True when it shall be deleted and nothing of it is left."""
    present = draft.snapshot.workloads_in(WorkloadKind.BROKER, cluster.name)
    if cluster.goal is ClusterGoal.DELETED:
        for workload in present:
            draft.remove(workload, force=cluster.force, reason="its cluster is deleted")
        return not any(w.name in draft.workloads for w in present)
    if isinstance(cluster.spec, ExternalBrokers):
        return False
    going: list[str] = []
    for workload in present:
        if workload.node not in cluster.spec.nodes:
            draft.remove(workload, reason=f"node {workload.node} is not among spec.managed.nodes")
            if draft.snapshot.is_offline(workload.node):
                going.append(f"{workload.name} is removed when node {workload.node} is online again")
        elif cluster.goal is ClusterGoal.STOPPED:
            reason = "its cluster was stopped by force" if cluster.force else ""
            draft.set_goal(workload, Goal.STOPPED, force=cluster.force, reason=reason)
    draft.broker_notes[cluster.name] = "; ".join(going)
    if cluster.goal is ClusterGoal.STOPPED:
        return False
    going += [f"its broker {held}" for held in kept_brokers.held_nodes(draft.snapshot, cluster).values()]
    try:
        specs = _broker_specs(draft, cluster, cluster.spec, present)
    except NoPort as problem:
        draft.broker_notes[cluster.name] = str(problem)
        return False
    draft.broker_notes[cluster.name] = "; ".join(filter(None, [*going, _change(draft, cluster, specs)]))
    return False


def _controllers(managed_brokers: ManagedBrokers, present: Sequence[Workload], numbers: Mapping[str, int]) -> set[int]:
    """Returns the numbers of the controllers: the present ones, else those of the first nodes."""
    there = {w.spec.broker_id for w in present if isinstance(w.spec, BrokerSpec) and w.spec.controller}
    if there:
        return there
    return {numbers[node] for node in list(numbers)[: kept_brokers.controllers_of(managed_brokers)]}


def _broker_specs(
    draft: Draft, cluster: BrokerCluster, managed_brokers: ManagedBrokers, present: Sequence[Workload]
) -> dict[str, tuple[str, BrokerSpec]]:
    """Returns node and spec of each broker by name. All ports come first: each broker must know every controller.
    Raises NoPort."""
    numbers = kept_brokers.numbers_of(kept_brokers.nodes_with_brokers(draft.snapshot, cluster), present)
    controllers = _controllers(managed_brokers, present, numbers)
    places: dict[str, tuple[str, int, int]] = {}
    ports_of_hosts: dict[str, set[int]] = {}
    for node, number in numbers.items():
        host = draft.node(node).host
        if not host:
            raise NoPort(f"node {node} has no address yet: its agent has not come")
        old = draft.workloads.get(broker_name(cluster.name, number))
        beside = {*ports_of_hosts.get(host, ()), *_metrics_port(draft, node, managed_brokers.metrics_port, old)}
        ports = _ports(draft, node, managed_brokers.port, old, beside, votes=number in controllers)
        ports_of_hosts.setdefault(host, set()).update(ports)
        places[node] = (host, *ports)
    voters = ",".join(
        f"{numbers[n]}@{joined_address(host, port)}"
        for n, (host, _, port) in sorted(places.items(), key=lambda entry: numbers[entry[0]])
        if numbers[n] in controllers
    )
    replicas = min(kept_brokers.QUORUM, len(places))
    properties = {**managed_brokers.properties, **broker_properties(cluster, managed_brokers)}
    return {
        broker_name(cluster.name, number): (
            node,
            BrokerSpec(
                cluster.name, cluster.kafka_cluster_id, number, *places[node], properties,
                controller=number in controllers,
                voters="" if controllers == {number} else voters,
                replicas=replicas,
                heap_mb=managed_brokers.heap_mb,
                routes=dict(managed_brokers.routes),
                metrics_port=managed_brokers.metrics_port,
                data_folders=_data_folders(cluster, managed_brokers, number),
                tls=managed_brokers.tls in kept_brokers.WITH_TLS,
                client_certificates=managed_brokers.tls is BrokerTls.MUTUAL,
            ),
        )
        for node, number in numbers.items()
    }  # fmt: skip


def _ports(
    draft: Draft, node: str, fixed: int, old: Workload | None, taken: set[int], *, votes: bool
) -> tuple[int, int]:
    """Returns the ports of a broker, its own and that of its controller (0 without one). Raises NoPort."""
    spec = old.spec if old is not None and isinstance(old.spec, BrokerSpec) else None
    if old is not None and spec is not None and (old.has_run or _has_its_ports(old, spec)) and fixed in (0, spec.port):
        return spec.port, spec.controller_port
    tried = () if old is None else (*old.tried_ports, *ports_taken(old))
    range_ = draft.limits.broker_ports
    if not fixed:
        free = draft.ports(node, range_, 2 if votes else 1, (*tried, *taken))
        return free[0], free[1] if votes else 0
    if spec is None or spec.port != fixed:
        draft.ports(node, range(fixed, fixed + 1), 1, tuple(taken))
    if not votes:
        return fixed, 0
    if spec is not None and old is not None and old.has_run:
        return fixed, spec.controller_port
    return fixed, draft.ports(node, range_, 1, (*tried, *taken, fixed))[0]


def _data_folders(cluster: BrokerCluster, managed_brokers: ManagedBrokers, number: int) -> tuple[str, ...]:
    """Returns the data folders of one broker, shared with no other cluster, not even an earlier one of the same
    name."""
    own = f"{cluster.name}-{number}-{cluster.kafka_cluster_id}"
    return tuple(f"{folder.rstrip('/')}/{own}" for folder in managed_brokers.data_folders)


def _has_its_ports(old: Workload, spec: BrokerSpec) -> bool:
    """Returns whether the broker's own port and that of its controller were never found taken."""
    return not {spec.port, spec.controller_port} & {*ports_taken(old)}


def _metrics_port(draft: Draft, node: str, port: int, old: Workload | None) -> set[int]:
    """Returns the port of a broker's metrics, if it has one. Raises NoPort if that port is taken by now."""
    if port and (old is None or port not in old.ports):
        draft.ports(node, range(port, port + 1))
    return {port} - {0}


def _change(draft: Draft, cluster: BrokerCluster, expected: Mapping[str, tuple[str, BrokerSpec]]) -> str:
    """Makes the changes that are allowed now; returns the reason why the rest waits, for people."""
    brokers = kept_brokers.brokers_of(draft.snapshot, cluster)
    left = []
    for name, (node, spec) in sorted(expected.items(), key=lambda entry: entry[1][1].broker_id):
        old = draft.workloads.get(name)
        if old is not None and (old.spec, old.goal) == (spec, Goal.RUNNING):
            continue
        if old is not None and len(brokers) > 1 and old.goal is Goal.RUNNING and old.is_in(ProcessState.RUNNING):
            left.append(name)
        else:
            draft.want(name, node, Goal.RUNNING, spec, reason=_why(old, spec))
    if not left:
        return ""
    if not any(_hindrances(draft, cluster, expected)):
        first = left.pop(0)
        spec = expected[first][1]
        draft.want(first, expected[first][0], Goal.RUNNING, spec, reason=_why(draft.workloads[first], spec))
    return f"a change of {left[0]} waits: {next(_hindrances(draft, cluster, expected))}" if left else ""


def _hindrances(draft: Draft, cluster: BrokerCluster, names: Iterable[str]) -> Iterator[str]:
    """Yields the reasons why no running broker may be ended now."""
    brokers = [draft.workloads[name] for name in names]
    for broker in brokers:
        if draft.snapshot.is_offline(broker.node):
            yield f"node {broker.node} is offline"
        if not broker.is_in(ProcessState.RUNNING):
            yield f"{broker.name} does not run"
    if cluster.seen.in_sync != kept_brokers.running_mark(cluster, brokers):
        yield "not all partitions are known to be in sync"


def _why(old: Workload | None, new: BrokerSpec) -> str:
    """Returns the reason why a broker is placed, starts or changes, for people: names of properties, never their
    values."""
    had = old.spec if old is not None and isinstance(old.spec, BrokerSpec) else None
    if old is None or had is None or old.goal is not Goal.RUNNING:
        return ""
    if taken := ports_taken(old):
        return f"port {taken[0]} of its node is taken"
    keys = sorted(k for k in {*had.properties, *new.properties} if had.properties.get(k) != new.properties.get(k))
    reasons = [f"properties changed: {', '.join(keys)}"] if keys else []
    if (had.host, had.port, had.controller_port) != (new.host, new.port, new.controller_port):
        reasons.append("its address changed")
    if (had.voters, had.replicas) != (new.voters, new.replicas):
        reasons.append("its cluster has other brokers")
    if had.metrics_port != new.metrics_port:
        reasons.append("the port of its metrics changed")
    if had.heap_mb != new.heap_mb:
        reasons.append("its heap changed")
    if names := sorted({name for name, _ in {*had.routes.items()} ^ {*new.routes.items()}}):
        reasons.append(f"routes changed: {', '.join(names)}")
    return "; ".join(reasons)
