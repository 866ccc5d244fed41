from __future__ import annotations

import pytest

from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.cli.autoscaling import autoscale_of, autoscale_text
from keelman.cli.specs.fields import apply
from keelman.cli.specs.options import GivenChange
from keelman.model.errors import InvalidArgument
from keelman.rpc.times import to_duration


def test_all_of_it_can_be_typed() -> None:
    autoscale = autoscale_of(
        "1..4,in=10,out=70,lag=1000,tasks=2,max-tasks=6,every=5,samples=2,pause=30,up-to=partitions"
    )
    assert autoscale == Autoscale(
        min_workers=1, max_workers=4, scale_in_cpu_percent=10, scale_out_cpu_percent=70, scale_out_lag_records=1000,
        tasks_per_worker=2, max_tasks=6, sample_period=to_duration(5), samples=2, cool_down=to_duration(30),
        tasks_up_to_partitions=True,
    )  # fmt: skip
    assert autoscale_text(autoscale) == (
        "1 to 4 workers: out above 70 % or 1,000 records of lag, in below 10 % of processor; 2 samples, one each 5 s, "
        "30 s between steps, 2 tasks each, at most 6, no more than partitions"
    )


@pytest.mark.parametrize(
    "text", ["", "4", "1-4", "a..b", "1..4,cpu=3", "1..4,in", "1..4,samples=1.5", "1..4,in=-1", "1..4,up-to=4"]
)
def test_what_is_mistyped_is_told(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"--autoscale: .*MIN\.\.MAX"):
        autoscale_of(text)


def test_it_takes_the_place_of_a_count() -> None:
    spec, dedicated = WorkerClusterSpec(count=3), DedicatedConnectorSpec()
    assert apply(GivenChange(autoscale="1..4"), spec) == ["autoscale"]
    assert spec.WhichOneof("placement") == "autoscale"
    assert apply(GivenChange(autoscale="1..4"), dedicated) == ["capacity"]
    assert dedicated.capacity.autoscale.max_workers == 4
    assert apply(GivenChange(count=2), spec) == ["count"]
    assert spec.count == 2
    for value in (GivenChange(autoscale="1..4", count=2), GivenChange(autoscale="1..4", nodes="a")):
        with pytest.raises(InvalidArgument, match="not together"):
            apply(value, WorkerClusterSpec())
