"""Judges clusters, topics and connector definitions by the state service's data. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from keelman.api.connect.v1.topic_pb2 import TopicState
from keelman.cli.doctor.finding import Finding
from keelman.rpc.enums import state_word, word

_TLS = re.compile(r"\b(tls|ssl|certificate|truststore|keystore|handshake)", re.IGNORECASE)
_SASL = re.compile(r"\b(sasl|authenticat|credential|scram|oauth)", re.IGNORECASE)
QUIET = ("RUNNING", "STOPPED", "STARTING", "STOPPING", "DELETING")


def broker_findings(clusters: Iterable[Any]) -> Iterator[Finding]:
    """Yields the problems of broker clusters, as the state service reaches them with their client properties."""
    for one in clusters:
        state, message, name = state_word(one.status), one.status.message, f"broker-cluster/{one.name}"
        if state in QUIET and not one.status.stuck:
            continue
        text = f"it is {state}: {message}" if message else f"it is {state}"
        if one.spec.WhichOneof("kind") == "managed":
            yield Finding("brokers", name, text, f"`keelman describe bc {one.name}`, `keelman logs bc {one.name}`")
        elif _SASL.search(message):
            yield Finding(
                "sasl", name, text,
                f"sasl.mechanism and sasl.jaas.config as the brokers want them (`keelman update bc {one.name} --set`)",
            )  # fmt: skip
        elif _TLS.search(message):
            yield Finding(
                "tls", name, text,
                "security.protocol, ssl.truststore.* and, where brokers ask for one, ssl.keystore.* of its client "
                "properties: the truststore needs the CA of the brokers' certificates, which name the addresses asked",
            )  # fmt: skip
        else:
            yield Finding(
                "network", name, text,
                f"see whether the state service's host reaches {one.spec.external.bootstrap_servers}: name service, "
                "routes, firewall; and whether the brokers' advertised.listeners are reached from there",
            )  # fmt: skip


def worker_findings(clusters: Iterable[Any]) -> Iterator[Finding]:
    """Yields the problems of worker clusters and of their connectors."""
    for one in clusters:
        status, name = one.status, f"worker-cluster/{one.name}"
        if status.stuck or state_word(one.status) == "DEGRADED":
            why = f": {status.message}" if status.message else ""
            yield Finding(
                "workers", name, f"it is {state_word(one.status)}{why}",
                f"`keelman describe wc {one.name}`, then `keelman logs wc {one.name}`",
            )  # fmt: skip
        if status.problem_connectors:
            yield Finding(
                "connectors", name, status.verdict or f"{status.problem_connectors} connectors have problems",
                f"`keelman get connectors --cluster {one.name} --state FAILED`; what is mended is restarted with "
                "`keelman restart connector NAME --failed`",
            )  # fmt: skip
        for problem in status.log_problems:
            yield Finding(
                "logs", name, f"logs are not delivered: {problem.message}", "see docs/log-delivery.md for its cause"
            )


def topic_findings(topics: Iterable[Any]) -> Iterator[Finding]:
    """Yields the differences of topics on their brokers from their resources."""
    for one in topics:
        state, name = word(TopicState, one.status.state), f"topic/{one.name}"
        if state in ("MISSING", "FAILED"):
            why = f": {one.status.message}" if one.status.message else ""
            yield Finding("topics", name, f"it is {state}{why}", f"`keelman apply topic {one.name} --wait`")
        for difference in one.status.differences:
            remedy = f"`keelman apply topic {one.name}`, or change the resource to what the brokers have"
            yield Finding("topics", name, difference, remedy)


def definition_findings(definitions: Iterable[Any]) -> Iterator[Finding]:
    """Yields the differences of connectors from their definitions."""
    for one in definitions:
        name = f"definition/{one.name}"
        if one.status.message and not one.status.applying:
            yield Finding("definitions", name, one.status.message, f"`keelman apply definition {one.name} --wait`")
        for drift in one.status.drifts if one.status.drifted else ():
            remedy = f"`keelman apply definition {one.name}` undoes it; or take it into the definition"
            yield Finding("definitions", name, f"its connector differs: {drift}", remedy)
