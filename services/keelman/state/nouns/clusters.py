"""What broker clusters and worker clusters share, and what is said of resources: checked, and found by their origin."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.json_format import MessageToDict
from sqlalchemy import BigInteger, Text
from sqlalchemy.types import JSON
from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import (
    broker_cluster_pb2,
    connector_definition_pb2,
    dedicated_connector_pb2,
    origin_pb2,
    plugin_import_pb2,
    plugin_import_service_pb2,
    topic_pb2,
    worker_cluster_pb2,
    worker_configuration_pb2,
    worker_configuration_service_pb2,
)
from keelman.connect.config.secret_keys import kept_json
from keelman.model.cluster import Annotations, BrokerCluster, ClusterGoal, Origin, WorkerCluster
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.shapes import check_labels
from keelman.rpc.times import to_timestamp
from keelman.state.nouns.rows import micros, moment, plain, plain_spec
from keelman.state.nouns.serving import LabelledPage, has_labels, page_of
from keelman.state.planning.status import with_status
from keelman.state.snapshot import C, Snapshot

if TYPE_CHECKING:
    from keelman.state.store import Transaction

MAX_DESCRIPTION = 4096
CHANGED = ("description", "labels", "extra")
"""Of resources of which only what is said of them changes."""
AnnotatedSpec: TypeAlias = (
    broker_cluster_pb2.BrokerClusterSpec
    | worker_cluster_pb2.WorkerClusterSpec
    | topic_pb2.TopicSpec
    | connector_definition_pb2.ConnectorDefinitionSpec
    | dedicated_connector_pb2.DedicatedConnectorSpec
    | plugin_import_pb2.PluginImport
    | plugin_import_service_pb2.CreatePluginImportRequest
    | worker_configuration_pb2.WorkerConfiguration
    | worker_configuration_service_pb2.CreateWorkerConfigurationRequest
)


class ClusterColumns(SQLModel):
    """The columns that the rows of both have."""

    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_type=BigInteger)
    update_time: int = Field(sa_type=BigInteger)
    generation: int = Field(sa_type=BigInteger)
    revision: int = Field(sa_type=BigInteger)
    goal: str
    spec: dict[str, Any] = Field(sa_type=JSON)
    note: str = Field(sa_type=Text)
    status: dict[str, Any] = Field(sa_type=JSON)


def cluster_row(cluster: BrokerCluster | WorkerCluster) -> dict[str, Any]:
    """The values of a row that both have."""
    return {
        "name": cluster.name, "uid": cluster.uid, "create_time": micros(cluster.create_time),
        "update_time": micros(cluster.update_time), "generation": cluster.generation,
        "revision": int(cluster.etag or 0), "goal": str(cluster.goal), "spec": plain_spec(cluster.spec),
        "note": cluster.note, "status": plain(cluster.status),
    }  # fmt: skip


def cluster_fields(row: Any) -> dict[str, Any]:
    """The fields of a cluster that both rows give."""
    return {
        "name": row.name, "uid": row.uid, "create_time": moment(row.create_time),
        "update_time": moment(row.update_time), "generation": row.generation, "etag": str(row.revision),
        "goal": ClusterGoal(row.goal), "note": row.note,
    }  # fmt: skip


def cluster_message(cluster: BrokerCluster | WorkerCluster) -> dict[str, Any]:
    """The fields of a message that both have."""
    return {
        "name": cluster.name,
        "uid": cluster.uid,
        "create_time": to_timestamp(cluster.create_time),
        "update_time": to_timestamp(cluster.update_time),
        "generation": cluster.generation,
        "etag": cluster.etag,
    }


def annotate(spec: AnnotatedSpec, annotations: Annotations) -> None:
    """Puts what users say of a resource into its spec's message."""
    spec.description = annotations.description
    spec.labels.update(annotations.labels)
    if annotations.origin is not None:
        spec.origin.CopyFrom(origin_pb2.Origin(**dataclasses.asdict(annotations.origin)))
    if annotations.extra is not None:
        spec.extra.update(annotations.extra)


def annotations_of(spec: AnnotatedSpec) -> Annotations:
    """What users say of a resource."""
    return Annotations(
        description=spec.description,
        labels=dict(spec.labels),
        origin=Origin(spec.origin.api, spec.origin.scope, spec.origin.key) if spec.HasField("origin") else None,
        extra=MessageToDict(spec.extra) if spec.HasField("extra") else None,
    )


def check_not_deleted(cluster: BrokerCluster | WorkerCluster) -> None:
    """Raises FailedPrecondition for a cluster that is being deleted."""
    if cluster.goal is ClusterGoal.DELETED:
        what = "broker cluster" if isinstance(cluster, BrokerCluster) else "worker cluster"
        raise FailedPrecondition(f"{what} {cluster.name!r} is being deleted", reason="DELETING")


def saved(tx: Transaction, cluster: C) -> C:
    """Stores a cluster that is new or changed; its status is derived again."""
    return tx.put(with_status(cluster, tx.snapshot))


def with_goal(tx: Transaction, cluster: C, goal: ClusterGoal) -> C:
    """The cluster as it is, or with another goal in a new generation."""
    if cluster.goal is goal:
        return cluster
    changed = dataclasses.replace(cluster, goal=goal, generation=cluster.generation + 1, note="")
    if isinstance(changed, WorkerCluster) and goal is ClusterGoal.RUNNING:
        changed = dataclasses.replace(changed, force=False)
    return saved(tx, changed)


class OriginPage(LabelledPage, Protocol):
    """A request for a page of a list of what has some labels and is of an API."""

    @property
    def origin_api(self) -> str:
        """Of this API; empty for any."""

    @property
    def origin_scope(self) -> str:
        """Of this scope of it; empty for any."""


def origin_page(snapshot: Snapshot, noun: str, request: OriginPage) -> tuple[list[Any], str]:
    """One page of the resources of a noun that have annotations, and the token of the next."""
    labels = request.labels.items()

    def wanted(one: Any) -> bool:
        annotations: Annotations = one.annotations
        origin = annotations.origin
        api, scope = ("", "") if origin is None else (origin.api, origin.scope)
        return (
            has_labels(annotations.labels, labels)
            and request.origin_api in ("", api)
            and request.origin_scope in ("", scope)
        )

    return page_of(snapshot.names(noun), snapshot.resources(noun), request, wanted)


def check_mask(mask: FieldMask) -> None:
    """Raises InvalidArgument for a path of what cannot be changed."""
    if wrong := next((path for path in mask.paths if path.partition(".")[0] not in CHANGED), ""):
        raise InvalidArgument.of("update_mask", wrong, f"one of {', '.join(CHANGED)}: nothing else changes")


def checked_annotations(prefix: str, given: Annotations, present: Annotations | None) -> Annotations:
    """What is said of a resource, with what came back hidden as it is stored. Raises InvalidArgument."""
    check_description(given.description, prefix)
    check_labels(f"{prefix}labels", given.labels)
    if given.extra is None:
        return given
    kept = kept_json(f"{prefix}extra", given.extra, None if present is None else present.extra)
    return dataclasses.replace(given, extra=kept)


def check_description(text: str, prefix: str = "") -> None:
    """Raises InvalidArgument for a description that is too long."""
    if len(text) > MAX_DESCRIPTION:
        raise InvalidArgument.of(f"{prefix}description", f"{text[:20]}...", f"at most {MAX_DESCRIPTION} characters")
