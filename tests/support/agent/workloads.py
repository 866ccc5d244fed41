"""Real workloads for the agent's tests."""

from __future__ import annotations

from keelman.api.node.v1.workload_pb2 import SparkWorkload, WorkerWorkload, Workload, WorkloadSpec
from keelman.runtime.processes.ports import free_ports
from support.agent.agents import RUNNING

CONVERTER = "org.apache.kafka.connect.storage.StringConverter"


def of_kind(name: str, spec: WorkloadSpec) -> Workload:
    return Workload(name=name, uid="u", node="n1", generation=1, goal=RUNNING, spec=spec)


def real_workloads(bootstrap: str, group: str) -> list[Workload]:
    """A Spark service and a worker that uses it."""
    spark_port, port = free_ports(2)
    spark = SparkWorkload(host="127.0.0.1", port=spark_port, master="local[4,1]")
    properties = {
        "bootstrap.servers": bootstrap, "group.id": group, "key.converter": CONVERTER,
        "value.converter": CONVERTER, "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets", "status.storage.topic": f"{group}-status",
        "offset.storage.partitions": "1", "status.storage.partitions": "1",
        "config.storage.replication.factor": "1", "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1", "listeners": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    worker = WorkerWorkload(
        worker_cluster=group, host="127.0.0.1", port=port, properties=properties,
        spark_address=f"127.0.0.1:{spark_port}",
    )  # fmt: skip
    return [
        of_kind("spark/n1", WorkloadSpec(spark=spark)),
        of_kind(f"worker/{group}/0", WorkloadSpec(worker=worker)),
    ]
