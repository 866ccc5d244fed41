"""Checks the specs of broker clusters, and changes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from keelman.kafka.properties.broker_keys import SET_ELSEWHERE
from keelman.model.cluster import BrokerClusterSpec, ExternalBrokers, ManagedBrokers
from keelman.model.errors import InvalidArgument, Violation
from keelman.model.rules.field_checks import LARGEST_PORT, check_labels, check_port, check_routes
from keelman.runtime.logs.redaction import HIDDEN
from keelman.state.clusters.port_checks import check_broker_ports_free
from keelman.state.kafka.access_rules import OTHER_RULES
from keelman.state.kafka.properties import in_field, raise_all
from keelman.state.resources.checks import check_nodes, check_same, known_nodes
from keelman.state.resources.origins import check_origin
from keelman.state.resources.snapshot import BROKER_CLUSTER, Snapshot
from keelman.workers.properties.refusals import client_refusals

MAX_PATH = 1024


def check(spec: BrokerClusterSpec, snapshot: Snapshot, name: str = "") -> None:
    """Raises InvalidArgument naming the field, the value and the legal values."""
    match spec:
        case ManagedBrokers(nodes, properties, port=port):
            check_port("spec.managed.port", port, zero="a free one on each node")
            if not nodes:
                raise InvalidArgument.of("spec.managed.nodes", "", "at least one node; " + known_nodes(snapshot))
            check_nodes("spec.managed.nodes", nodes, snapshot)
            check_port("spec.managed.metrics_port", spec.metrics_port, zero="none")
            if spec.metrics_port and spec.metrics_port == port:
                raise InvalidArgument.of("spec.managed.metrics_port", port, "another port than spec.managed.port")
            check_broker_ports_free(name, spec, snapshot)
            _check_quorum(spec, snapshot)
            if spec.heap_mb and spec.heap_mb < 128:
                raise InvalidArgument.of("spec.managed.heap_mb", spec.heap_mb, "0, or at least 128")
            check_routes("spec.managed.routes", spec.routes)
            _check_folders(spec.data_folders)
            _check_properties(properties)
            if spec.has_rules:
                _check_no_other_rules(properties)
        case ExternalBrokers(bootstrap):
            _check_bootstrap(bootstrap)
            raise_all(_client_problems(spec))
    check_labels("spec.labels", spec.annotations.labels)
    check_origin(BROKER_CLUSTER, name, spec.annotations.origin, snapshot)


def _client_problems(spec: ExternalBrokers) -> list[Violation]:
    """Returns the problems of the properties of clients, under the field that contains each."""
    problems, field = client_problems(spec), "spec.external.credential_profile"
    return in_field(
        "spec.external.client_properties", [problem for problem in problems if problem.field not in spec.credentials]
    ) + [
        Violation(field, f"{field}: secret {spec.credential_profile!r}, key {problem.description}")
        for problem in problems
        if problem.field in spec.credentials
    ]


def client_problems(spec: ExternalBrokers) -> list[Violation]:
    """Returns the problems that clients would find in the properties for these brokers: key by key, without the values
    of the credential profile."""
    violations = []
    for refusal in client_refusals(spec.connection):
        text = (
            refusal.description
            if refusal.description.startswith(refusal.field)
            else f"{refusal.field}: {refusal.description}"
        )
        for value in filter(None, spec.credentials.values()):
            text = text.replace(repr(value), repr(HIDDEN))
        violations.append(Violation(refusal.field, text))
    return violations


def _check_folders(folders: Sequence[str]) -> None:
    legal = "an absolute path without '..' or commas, each once, and not within another"
    for place, folder in enumerate(folders):
        parts = PurePosixPath(folder).parts
        others = [PurePosixPath(folder).parts for folder in folders[:place]]
        is_path = folder.startswith("/") and len(parts) > 1 and ".." not in parts and not {*",\0\n"} & {*folder}
        within = any(parts[: len(other)] == other or other[: len(parts)] == parts for other in others)
        if not is_path or within or len(folder) > MAX_PATH:
            raise InvalidArgument.of(f"spec.managed.data_folders[{place}]", folder[:MAX_PATH], legal)


def _check_properties(properties: Mapping[str, str]) -> None:
    legal = "leave it out: keelman sets it itself, as it does " + ", ".join(SET_ELSEWHERE)
    violations: list[Violation] = []
    for key in SET_ELSEWHERE.keys() & properties.keys():
        violations += InvalidArgument.of(f"spec.managed.properties.{key}", properties[key], legal).violations
    raise_all(sorted(violations, key=lambda violation: violation.field))


def _check_no_other_rules(properties: Mapping[str, str]) -> None:
    for key in OTHER_RULES:
        if key in properties:
            legal = "leave it out: keelman sets it, as spec.managed.access is RULES"
            raise InvalidArgument.of(f"spec.managed.properties.{key}", properties[key], legal)


def _check_quorum(spec: ManagedBrokers, snapshot: Snapshot) -> None:
    if spec.controllers not in (0, 1, 3):
        raise InvalidArgument.of("spec.managed.controllers", spec.controllers, "1, 3, or 0 for what fits the nodes")
    if spec.controllers > len(spec.nodes):
        raise InvalidArgument.of(
            "spec.managed.controllers", spec.controllers, f"no more than there are nodes ({len(spec.nodes)})"
        )
    hosts = [snapshot.nodes[node].host for node in spec.nodes]
    shared = next((host for host in hosts if host and hosts.count(host) > 1), None)
    if shared is not None and spec.port:
        raise InvalidArgument.of(
            "spec.managed.port", spec.port, f"0 for a free one on each, as nodes share the host {shared}"
        )
    if shared is not None and spec.metrics_port:
        raise InvalidArgument.of(
            "spec.managed.metrics_port", spec.metrics_port, f"0 for none, as nodes share the host {shared}"
        )


def check_change(old: BrokerClusterSpec, new: BrokerClusterSpec, *, placed: bool = False) -> None:
    """Raises InvalidArgument for a field that cannot be changed, or not since brokers were `placed`."""
    if isinstance(old, ManagedBrokers) != isinstance(new, ManagedBrokers):
        raise InvalidArgument.of("spec.kind", "external" if isinstance(new, ExternalBrokers) else "managed",
                                 "its value when the cluster was created")  # fmt: skip
    check_same("spec.origin", old.annotations.origin, new.annotations.origin)
    if isinstance(old, ManagedBrokers) and isinstance(new, ManagedBrokers):
        check_same("spec.managed.controllers", old.controllers, new.controllers)
        check_same("spec.managed.tls", old.tls.value, new.tls.value)
        check_same("spec.managed.access", old.access.value, new.access.value)
        if placed:
            check_same("spec.managed.data_folders", old.data_folders, new.data_folders)


def _check_bootstrap(text: str) -> None:
    for server in text.split(","):
        host, colon, port = server.strip().rpartition(":")
        legal = colon and host and not any(c.isspace() or c == "/" for c in host) and port.isascii() and port.isdigit()
        if not legal or not 1 <= int(port) <= LARGEST_PORT:
            raise InvalidArgument.of(
                "spec.external.bootstrap_servers", text, "host:port, or several with commas between"
            )
