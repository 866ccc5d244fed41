"""The streams of logs that an agent delivers for a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.agent.settings import Settings
from keelman.agent.shipping.shipping import Shipping
from keelman.api.node.v1.workload_pb2 import LogTargets, WorkerWorkload, Workload, WorkloadSpec
from keelman.runtime.home import Home


@pytest.mark.parametrize(
    ("fields", "slots"),
    [({}, True), ({"kafka_connect": True}, False), ({"spark_cluster": "big", "spark_address": "h:1"}, False)],
)
def test_slots_log_on_the_node_only_if_its_spark_service_has_them(
    tmp_path: Path, fields: dict[str, object], slots: bool
) -> None:
    shipping = Shipping(Home(tmp_path), "n1", Settings().shipping_limits)
    spec = WorkerWorkload(worker_cluster="demo", log_targets=LogTargets(name="demo", file_group="all"), **fields)  # type: ignore[arg-type]
    workload = Workload(name="worker/demo/0", uid="u", node="n1", spec=WorkloadSpec(worker=spec))
    names = [delivery.stream.name for delivery in shipping._wanted(workload)]
    assert names == ["demo-0", *(["demo-slots-n1"] if slots else [])]
