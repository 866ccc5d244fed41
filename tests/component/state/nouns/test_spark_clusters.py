"""Spark clusters over real gRPC: kept with their secrets sealed, placed for their users, not deleted while used."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import spark_cluster_service_pb2 as pb
from keelman.api.connect.v1.broker_cluster_pb2 import ClusterState
from keelman.api.connect.v1.spark_cluster_pb2 import SparkCluster, SparkClusterSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2 import UpdateWorkerClusterRequest
from keelman.api.node.v1.workload_pb2 import WORKLOAD_STATE_RUNNING, WorkloadStatus
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from keelman.rpc.errors import translated
from support.eventually import eventually
from support.state.service import Agent, Clients, state_in_loop

pytestmark = pytest.mark.component
SECRET = "canary-0815"
SPEC = SparkClusterSpec(
    master="spark://10.0.0.9:7077",
    properties={"spark.executor.instances": "4", "spark.authenticate.secret": SECRET},
    executor_memory_mb=1024,
    labels={"team": "blue"},
)


async def create(clients: Clients, name: str, spec: SparkClusterSpec = SPEC, **more: Any) -> SparkCluster:
    with translated():
        request = pb.CreateSparkClusterRequest(name=name, spec=spec, **more)
        return (await clients.sparks.CreateSparkCluster(request)).spark_cluster


async def get(clients: Clients, name: str) -> SparkCluster:
    with translated():
        return (await clients.sparks.GetSparkCluster(pb.GetSparkClusterRequest(name=name))).spark_cluster


async def update(clients: Clients, name: str, spec: SparkClusterSpec, *paths: str, etag: str = "") -> SparkCluster:
    request = pb.UpdateSparkClusterRequest(name=name, spec=spec, update_mask=FieldMask(paths=paths), etag=etag)
    with translated():
        return (await clients.sparks.UpdateSparkCluster(request)).spark_cluster


async def delete(clients: Clients, name: str) -> None:
    with translated():
        await clients.sparks.DeleteSparkCluster(pb.DeleteSparkClusterRequest(name=name))


async def name_it(clients: Clients, workers: str, spark: str) -> None:
    spec, mask = WorkerClusterSpec(spark_cluster=spark), FieldMask(paths=["spark_cluster"])
    with translated():
        await clients.clusters.UpdateWorkerCluster(
            UpdateWorkerClusterRequest(name=workers, spec=spec, update_mask=mask)
        )


async def test_it_is_kept_changed_and_refused(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, _):
        made = await create(clients, "big", request_id="r1")
        assert await create(clients, "big", request_id="r1") == made
        assert (made.generation, made.status.state) == (1, ClusterState.CLUSTER_STATE_STOPPED)
        assert made.spec.properties["spark.authenticate.secret"] == "[hidden]"
        stored = "".join(map(str, _rows(tmp_path)))
        assert "big" in stored
        assert SECRET not in stored
        with pytest.raises(AlreadyExists, match="a spark cluster named 'big' exists already"):
            await create(clients, "big")
        with pytest.raises(InvalidArgument, match=r"spec\.master: 'yarn' is not legal"):
            await create(clients, "yarn", SparkClusterSpec(master="yarn"))

        changed = await update(clients, "big", SparkClusterSpec(drivers=3), "drivers", etag=made.etag)
        assert (changed.spec.drivers, changed.generation) == (3, 2)
        same = await update(clients, "big", made.spec, "properties")
        assert (same.generation, same.etag) == (2, changed.etag), "a hidden value is the stored one"
        with pytest.raises(Conflict, match="etag"):
            await update(clients, "big", SparkClusterSpec(drivers=1), "drivers", etag=made.etag)
        with pytest.raises(InvalidArgument, match=r"spec\.tenant: 'red' is not legal"):
            await update(clients, "big", SparkClusterSpec(tenant="red"), "tenant")
        listed = await clients.sparks.ListSparkClusters(pb.ListSparkClustersRequest(labels={"team": "blue"}))
        assert [spark.name for spark in listed.spark_clusters] == ["big"]
        await delete(clients, "big")
        with pytest.raises(NotFound, match="no spark cluster is named 'big'"):
            await get(clients, "big")


def _rows(home: Path) -> list[Any]:
    with sqlite3.connect(next(home.rglob("*.db"))) as link:
        return link.execute("select * from resource where noun = 'spark_cluster'").fetchall()


async def test_its_drivers_run_while_a_worker_cluster_that_names_it_runs(tmp_path: Path) -> None:
    async with (
        state_in_loop(tmp_path) as (clients, _),
        Agent(clients, "n1", host="10.0.0.1") as first,
        Agent(clients, "n2", host="10.0.0.2") as second,
    ):
        await clients.create_external("default", "127.0.0.1:1")
        await create(clients, "big")
        with pytest.raises(InvalidArgument, match=r"spec\.spark_cluster: 'bog' is not legal: .* \(big\)"), translated():
            await clients.create_workers("demo", count=2, spark_cluster="bog")
        await clients.create_workers("demo", count=2, spark_cluster="big")
        with pytest.raises(FailedPrecondition, match="'big' is used by worker clusters demo"):
            await delete(clients, "big")
        await clients.start_workers("demo")
        await eventually(lambda: _state(clients, "RUNNING"), what="the Spark cluster runs")

        spark = await get(clients, "big")
        assert [(driver.workload, driver.node) for driver in spark.status.drivers] == [
            ("spark/@big/0", "n1"), ("spark/@big/1", "n2"),
        ]  # fmt: skip
        assert list(spark.users) == ["demo"]
        assert "spark/n1" not in first.workloads, "no node has a Spark service of its own"
        driver = first.workloads["spark/@big/0"].spec.spark
        assert (driver.cluster, driver.master, driver.executor_memory_mb) == ("big", SPEC.master, 1024)
        assert driver.properties["spark.authenticate.secret"] == SECRET
        assert driver.slot_port not in (0, driver.port)
        worker = next(w for w in first.workloads.values() if w.name.startswith("worker/")).spec.worker
        addresses = ",".join(d.address for d in spark.status.drivers)
        assert (worker.spark_cluster, worker.spark_address) == ("big", addresses)

        said = WorkloadStatus(state=WORKLOAD_STATE_RUNNING, generation=1, reason="WAITING_FOR_CORES", message="4 of 16")
        first.special["spark/@big/0"] = said
        first.report()
        await eventually(lambda: _state(clients, "DEGRADED"), what="it tells that cores are missing")
        assert (await get(clients, "big")).status.reason == "WAITING_FOR_CORES"
        assert "4 of 16" in (await clients.worker_cluster("demo")).status.message

        await name_it(clients, "demo", "")
        await eventually(lambda: "spark/n1" in first.workloads and "spark/n2" in second.workloads)
        await eventually(lambda: not [n for n in {**first.workloads, **second.workloads} if "@" in n])
        await delete(clients, "big")


async def _state(clients: Clients, state: str) -> bool:
    return (await get(clients, "big")).status.state == ClusterState.Value(f"CLUSTER_STATE_{state}")
