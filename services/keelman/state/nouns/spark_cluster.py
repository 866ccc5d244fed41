"""Spark clusters: a Spark that runs tasks for workers of any node."""

from __future__ import annotations

from typing import Any

from keelman.api.connect.v1 import spark_cluster_pb2
from keelman.api.connect.v1 import spark_cluster_service_pb2 as pb
from keelman.api.connect.v1 import spark_cluster_service_pb2_grpc as grpc
from keelman.api.node.v1 import workload_pb2
from keelman.model.spark_cluster import SparkCluster, SparkClusterSpec
from keelman.model.workload import ProcessState, Workload
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.masks import masked
from keelman.state.clusters import spark_clusters
from keelman.state.clusters.spark_status import NODE_OFFLINE, present_drivers, spark_cluster_status
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.annotations import annotated, annotations_of
from keelman.state.resources.hidden import kept_spec, shown_spec
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, get, list_page, writing
from keelman.state.resources.snapshot import SPARK_CLUSTER, Snapshot
from keelman.state.resources.transaction import Transaction


def spec_message(spec: SparkClusterSpec) -> spark_cluster_pb2.SparkClusterSpec:
    """Returns the message of a Spark cluster's spec, complete."""
    return message_of(spark_cluster_pb2.SparkClusterSpec, spec, **annotated(spec.annotations))


def spec_of(message: spark_cluster_pb2.SparkClusterSpec) -> SparkClusterSpec:
    """Returns the spec of a message."""
    return value_of(SparkClusterSpec, message, annotations=annotations_of(message))


def spark_cluster_message(cluster: SparkCluster) -> spark_cluster_pb2.SparkCluster:
    """Returns a Spark cluster as events have it: without status and users."""
    return message_of(spark_cluster_pb2.SparkCluster, cluster, spec=spec_message(shown_spec(cluster.spec)))


def answered(cluster: SparkCluster, snapshot: Snapshot) -> spark_cluster_pb2.SparkCluster:
    """Returns a Spark cluster as users see it."""
    message = spark_cluster_message(cluster)
    drivers = [_driver(driver, snapshot) for driver in present_drivers(cluster.name, snapshot)]
    status = spark_cluster_status(cluster, snapshot)
    message.status.CopyFrom(message_of(spark_cluster_pb2.SparkClusterStatus, status, drivers=drivers))
    message.users.extend(user.name for user in snapshot.users_of_spark(cluster.name))
    return message


def _driver(driver: Workload, snapshot: Snapshot) -> spark_cluster_pb2.SparkDriver:
    status = driver.current
    state = ProcessState.PENDING if status is None else status.state
    reason, text = ("", "") if status is None else (status.reason, status.message)
    if snapshot.is_offline(driver.node):
        reason, text = NODE_OFFLINE, f"node {driver.node} is offline"
    return spark_cluster_pb2.SparkDriver(
        workload=driver.name, node=driver.node, address=driver.address, reason=reason, message=text,
        state=workload_pb2.WorkloadState.Value(f"WORKLOAD_STATE_{state}"),
    )  # fmt: skip


NOUN = Noun(SparkCluster, spark_cluster_message)


class SparkClusterApi(NounApi[NounParts], grpc.SparkClusterServiceServicer):
    """Spark clusters."""

    noun = SPARK_CLUSTER
    GetSparkCluster, ListSparkClusters = get, list_page

    @writing()
    def CreateSparkCluster(self, tx: Transaction, request: pb.CreateSparkClusterRequest) -> SparkCluster:
        """Stores a Spark cluster."""
        return spark_clusters.create(tx, request.name, kept_spec(spec_of(request.spec), None))

    @writing()
    def UpdateSparkCluster(self, tx: Transaction, request: pb.UpdateSparkClusterRequest) -> SparkCluster:
        """Changes the spec of a Spark cluster."""

        def change(spec: SparkClusterSpec) -> SparkClusterSpec:
            return kept_spec(spec_of(masked(spec_message(spec), request.spec, request.update_mask)), spec)

        return spark_clusters.update(tx, request.name, request.etag, change)

    @writing()
    def DeleteSparkCluster(self, tx: Transaction, request: pb.DeleteSparkClusterRequest) -> SparkCluster:
        """Deletes a Spark cluster."""
        return spark_clusters.delete(tx, request.name, request.etag)

    def _shown(self, cluster: SparkCluster, request: Any) -> spark_cluster_pb2.SparkCluster:
        message = answered(cluster, self._snapshot)
        message.status.observed_generation = self.parts.planned.observed(cluster)
        return message

    def _fields(self, cluster: SparkCluster, tx: Transaction) -> dict[str, Any]:
        return {SPARK_CLUSTER: answered(cluster, tx.snapshot)}


API = SparkClusterApi
