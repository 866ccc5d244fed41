"""Finds the resources that refer to a secret, and the secrets that the workers of a node get. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from keelman.api.node.v1 import session_service_pb2 as pb
from keelman.connect.config.providers import is_named, secret_providers
from keelman.connect.config.references import references_of
from keelman.model.cluster import ExternalBrokers
from keelman.model.connectors.dedicated_connector import DedicatedConnector
from keelman.model.workload import WorkerSpec
from keelman.state.dedicated.composition import configured_by, runtime_config
from keelman.state.resources.snapshot import SECRET, Snapshot


def users_of(name: str, snapshot: Snapshot) -> list[str]:
    """Returns the resources known to refer to a secret: broker clusters, worker clusters, connector definitions and
    dedicated connectors.

    Connectors that were created by the REST API of workers are not known here.
    """
    users = [
        f"broker cluster {broker_cluster.name}"
        for broker_cluster in snapshot.broker_clusters.values()
        if isinstance(broker_cluster.spec, ExternalBrokers) and broker_cluster.spec.credential_profile == name
    ]
    for cluster in snapshot.worker_clusters.values():
        providers = secret_providers(cluster.spec.properties)
        if not providers:
            continue
        if _refers([cluster.spec.properties], providers, name):
            users.append(f"worker cluster {cluster.name}")
        definitions = (
            snapshot.connector_definitions[definition] for definition in snapshot.definitions_on(cluster.name)
        )
        users += [
            f"connector definition {definition.name}"
            for definition in definitions
            if _refers([definition.spec.config], providers, name)
        ]
        dedicated = snapshot.dedicated_connectors.get(cluster.name)
        if dedicated is not None and _refers([_given(dedicated, snapshot)], providers, name):
            users.append(f"dedicated connector {dedicated.name}")
    return sorted(users)


def _given(dedicated: DedicatedConnector, snapshot: Snapshot) -> dict[str, str]:
    """Returns the configuration as its workers get it: parts of it come from its worker configuration."""
    return runtime_config(dedicated, configured_by(dedicated.spec, snapshot))


def _refers(configs: Iterable[Mapping[str, str]], providers: Iterable[str], name: str) -> bool:
    return any(reference.provider in providers and reference.path == name for reference in references_of(*configs))


def secrets_of(node: str, snapshot: Snapshot, bucket_keys: pb.BucketKeys | None = None) -> pb.NodeSecrets:
    """Returns all secrets that the workers of a node may read, with their values; and the keys of buckets, if its agent
    delivers logs to these."""
    secrets, names = pb.NodeSecrets(), set[str]()
    for workload in snapshot.workloads_on(node):
        if not isinstance(workload.spec, WorkerSpec):
            continue
        targets = workload.spec.log_targets
        if bucket_keys is not None and targets.bucket and targets.buckets == bucket_keys.buckets:
            secrets.bucket_keys.CopyFrom(bucket_keys)
        patterns = [pattern for some in secret_providers(workload.spec.properties).values() for pattern in some]
        if not patterns:
            continue
        secrets.workers.add(workload=workload.name, names=patterns)
        names.update(name for name in snapshot.names(SECRET) if is_named(name, patterns))
    for name in sorted(names):
        secrets.secrets.add(name=name, values=snapshot.resources(SECRET)[name].values)
    return secrets
