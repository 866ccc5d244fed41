"""Judges clusters, topics and connector definitions by the state service's data. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerAccess
from keelman.api.connect.v1.topic_pb2 import TopicState
from keelman.cli.doctor.finding import Finding
from keelman.rpc.enums import state_word, word

_TLS = re.compile(r"\b(tls|ssl|certificate|truststore|keystore|handshake)", re.IGNORECASE)
_SASL = re.compile(r"\b(sasl|authenticat|credential|scram|oauth)", re.IGNORECASE)
QUIET = ("RUNNING", "STOPPED", "STARTING", "STOPPING", "DELETING")


def broker_findings(clusters: Iterable[Any], workers: Iterable[Any] = ()) -> Iterator[Finding]:
    """Yields the problems of broker clusters, as the state service reaches them with their client properties. `workers`
    are the worker clusters, which may name tenants."""
    tenants: dict[str, set[str]] = {}
    for worker_cluster in workers:
        tenants.setdefault(worker_cluster.spec.broker_cluster, set()).add(worker_cluster.spec.tenant)
    for cluster in clusters:
        state, message, name = state_word(cluster.status), cluster.status.message, f"broker-cluster/{cluster.name}"
        named = sorted(tenants.get(cluster.name, set()) - {""})
        if named and cluster.spec.managed.access == BrokerAccess.BROKER_ACCESS_OPEN:
            yield Finding(
                "tenants", name,
                f"it is open: connectors of all tenants ({', '.join(named)}) can read and write each other's topics",
                "create another with `--tls mutual`, which has access rules, and move its worker clusters there",
            )  # fmt: skip
        if state in QUIET and not cluster.status.stuck:
            continue
        text = f"it is {state}: {message}" if message else f"it is {state}"
        if cluster.spec.WhichOneof("kind") == "managed":
            yield Finding(
                "brokers", name, text, f"`keelman describe bc {cluster.name}`, `keelman logs bc {cluster.name}`"
            )
        elif _SASL.search(message):
            yield Finding(
                "sasl", name, text,
                "sasl.mechanism and sasl.jaas.config as the brokers want them "
                f"(`keelman update bc {cluster.name} --set`)",
            )  # fmt: skip
        elif _TLS.search(message):
            yield Finding(
                "tls", name, text,
                "security.protocol, ssl.truststore.* and, where brokers require one, ssl.keystore.* of its client "
                "properties: the truststore needs the CA of the brokers' certificates, which must name their addresses",
            )  # fmt: skip
        else:
            yield Finding(
                "network", name, text,
                f"see whether the state service's host reaches {cluster.spec.external.bootstrap_servers}: name "
                "service, routes, firewall; and whether the brokers' advertised.listeners are reached from there",
            )  # fmt: skip


def worker_findings(clusters: Iterable[Any]) -> Iterator[Finding]:
    """Yields the problems of worker clusters and of their connectors."""
    for cluster in clusters:
        status, name = cluster.status, f"worker-cluster/{cluster.name}"
        if status.stuck or state_word(cluster.status) == "DEGRADED":
            reason = f": {status.message}" if status.message else ""
            yield Finding(
                "workers", name, f"it is {state_word(cluster.status)}{reason}",
                f"`keelman describe wc {cluster.name}`, then `keelman logs wc {cluster.name}`",
            )  # fmt: skip
        if status.problem_connectors:
            yield Finding(
                "connectors", name, status.verdict or f"{status.problem_connectors} connectors have problems",
                f"`keelman get connectors --cluster {cluster.name} --state FAILED`; after a repair restart them "
                "with `keelman restart connector NAME --failed`",
            )  # fmt: skip
        for problem in status.log_problems:
            yield Finding(
                "logs", name, f"logs are not delivered: {problem.message}", "see docs/log-delivery.md for its cause"
            )


def topic_findings(topics: Iterable[Any]) -> Iterator[Finding]:
    """Yields the differences of topics on their brokers from their resources."""
    for topic in topics:
        state, name = word(TopicState, topic.status.state), f"topic/{topic.name}"
        if state in ("MISSING", "FAILED"):
            reason = f": {topic.status.message}" if topic.status.message else ""
            yield Finding("topics", name, f"it is {state}{reason}", f"`keelman apply topic {topic.name} --wait`")
        for difference in topic.status.differences:
            remedy = f"`keelman apply topic {topic.name}`, or change the resource to match the brokers"
            yield Finding("topics", name, difference, remedy)


def definition_findings(definitions: Iterable[Any]) -> Iterator[Finding]:
    """Yields the differences of connectors from their definitions."""
    for definition in definitions:
        name = f"definition/{definition.name}"
        if definition.status.message and not definition.status.applying:
            yield Finding(
                "definitions", name, definition.status.message, f"`keelman apply definition {definition.name} --wait`"
            )
        for drift in definition.status.drifts if definition.status.drifted else ():
            remedy = f"`keelman apply definition {definition.name}` undoes it; or take it into the definition"
            yield Finding("definitions", name, f"its connector differs: {drift}", remedy)
