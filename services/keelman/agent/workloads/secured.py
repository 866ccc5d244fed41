"""Decides what may run on a node with an unsecured network: brokers, drivers of Spark clusters and workers whose TLS
authenticates clients. Keeps the node's Spark service to loopback."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from keelman.agent.trust.broker_certificate import Certificate
from keelman.agent.trust.secrets import SecretFiles
from keelman.agent.workloads.commands import Command, PreparedProcess, command_table
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.model.errors import FailedPrecondition
from keelman.rpc.server import LOOPBACK, is_loopback
from keelman.runtime.home import Home
from keelman.workers.properties.basic_auth import EXTENSIONS, NAMES
from keelman.workers.properties.listeners import ADMIN_HTTPS_PREFIX, HTTPS_PREFIX

HTTPS = "https"
"""The value of `workload_trust` where only workers' https leaves the node."""
HERE = "127.0.0.1"
UNLINKED = (
    "would be plain text, and the network of {} is not secured: give the state service and the agents "
    "trust = installation, which makes it TLS, or the agents workload_trust = mesh"
)


def commands_for(
    trust: str,
    secrets: SecretFiles,
    data_root: Path,
    certificate: Certificate | None = None,
    tenant_users: str = "",
) -> dict[str, Command]:
    """Returns the starter of each kind of workload for this trust."""
    if trust != HTTPS:
        return command_table(trust, secrets, data_root, certificate, tenant_users)
    table = command_table(LOOPBACK, secrets, data_root, certificate, tenant_users)
    return {
        "broker": partial(_broker, table["broker"]),
        "spark": partial(_spark, table["spark"]),
        "worker": partial(_worker, table["worker"]),
    }


def _broker(command: Command, workload: Workload, home: Home) -> PreparedProcess:
    spec = workload.spec.broker
    if not (is_loopback(spec.host) or (spec.tls and spec.client_certificates)):
        what = "authenticates no client" if spec.tls else "speaks plain text"
        raise _refused(
            workload,
            f"the broker {what}, and the network of {spec.host} is not secured: create its cluster with tls = MUTUAL",
        )
    return command(workload, home)


def _spark(command: Command, workload: Workload, home: Home) -> PreparedProcess:
    spec = workload.spec.spark
    if spec.cluster:
        if not (spec.tls or is_loopback(spec.host)):
            raise _refused(workload, f"links of workers to Spark cluster {spec.cluster} {UNLINKED.format(spec.host)}")
        return command(workload, home)
    own = _copy(workload)
    own.spec.spark.host = HERE
    return command(own, home)


def _worker(command: Command, workload: Workload, home: Home) -> PreparedProcess:
    own = _copy(workload)
    spec = own.spec.worker
    if spec.spark_cluster and not spec.spark_client_properties:
        away = [host for host in hosts_of(spec.spark_address) if not is_loopback(host)]
        if away:
            raise _refused(workload, f"its link to Spark cluster {spec.spark_cluster} {UNLINKED.format(away[0])}")
    if not is_loopback(spec.host):
        if problem := open_listener(spec):
            raise _refused(workload, f"{problem}, and the network of {spec.host} is not secured")
        if spec.spark_address and not spec.spark_cluster:
            spec.spark_address = f"{HERE}:{spec.spark_address.rpartition(':')[2]}"
    return command(own, home)


def hosts_of(addresses: str) -> list[str]:
    """Returns the hosts of host:port, or of several with commas between."""
    return [address.strip().rpartition(":")[0].strip("[]") for address in addresses.split(",") if address.strip()]


def open_listener(spec: Any) -> str:
    """Returns which listener of a worker would answer any caller, and how to close it; empty for none."""
    classes = {part.strip() for part in spec.properties.get(EXTENSIONS, "").split(",")}
    if not spec.https:
        return "the worker's REST API would be plain http: give its cluster https"
    if not (classes & set(NAMES) or _asks_for_certificates(spec.properties, HTTPS_PREFIX)):
        return (
            f"the worker's REST API would authenticate no caller: set passwords for its cluster ({EXTENSIONS}) or "
            f"{HTTPS_PREFIX}ssl.client.auth=required"
        )
    if spec.admin_port and not _asks_for_certificates(spec.properties, ADMIN_HTTPS_PREFIX):
        return (
            "the worker's admin listener would authenticate no caller: remove its cluster's admin_port, or set "
            f"{ADMIN_HTTPS_PREFIX}ssl.client.auth=required"
        )
    if spec.metrics_port and spec.kafka_connect:
        return "the metrics of Kafka Connect's own worker would be plain http: give its cluster no metrics_port"
    return ""


def _asks_for_certificates(properties: Any, prefix_of_listener: str) -> bool:
    """Returns whether the https listeners that take keys under a prefix, or else the plain ones, require clients'
    certificates."""
    prefix = (
        f"{prefix_of_listener}ssl."
        if any(key.startswith(f"{prefix_of_listener}ssl.") for key in properties)
        else "ssl."
    )
    return bool(properties.get(f"{prefix}client.auth", "") == "required")


def _copy(workload: Workload) -> Workload:
    copied = Workload()
    copied.CopyFrom(workload)
    return copied


def _refused(workload: Workload, reason: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"{workload.name} is not started: {reason} (agent.workload_trust = {HTTPS})", reason="NOT_SECURED"
    )
