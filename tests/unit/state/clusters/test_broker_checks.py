"""The legal specs of a broker cluster besides its properties, and the fields that cannot be changed."""

from datetime import UTC, datetime

import pytest

from keelman.model.cluster import ManagedBrokers
from keelman.model.errors import InvalidArgument
from keelman.model.node import Node, NodeState
from keelman.state.clusters.broker_checks import check, check_change
from support.state.snapshots import snapshot_of

TIME = datetime(2026, 1, 1, tzinfo=UTC)
NODES = {n: Node(n, n, TIME, TIME, NodeState.ONLINE, "127.0.0.1:7420") for n in ("n1", "n2")}
SNAPSHOT = snapshot_of(NODES, {}, {}, {})


@pytest.mark.parametrize("folder", ["data", "/", "", "/a/../b", "/a,b", "/a\nb", "/data", "/data/in", "/" + "x" * 1024])
def test_data_folders_are_absolute_and_apart(folder: str) -> None:
    check(ManagedBrokers(("n1",), data_folders=("/data", "/data2", "/mnt/disk")), SNAPSHOT)
    with pytest.raises(InvalidArgument, match=r"spec\.managed\.data_folders\[1\]"):
        check(ManagedBrokers(("n1",), data_folders=("/data", folder)), SNAPSHOT)


def test_data_folders_stay_once_there_is_data() -> None:
    old, new = ManagedBrokers(("n1",)), ManagedBrokers(("n1",), data_folders=("/data",))
    check_change(old, new)
    with pytest.raises(InvalidArgument, match=r"spec\.managed\.data_folders"):
        check_change(old, new, placed=True)


@pytest.mark.parametrize(
    ("nodes", "ports", "message"),
    [
        (("n1",), (9092, 9092), r"spec\.managed\.metrics_port: 9092 is not legal: another port"),
        (("n1",), (0, 65536), r"spec\.managed\.metrics_port: 65536"),
        (("n1", "n2"), (0, 9404), r"spec\.managed\.metrics_port: 9404 .* share the host 127\.0\.0\.1"),
    ],
)
def test_a_port_of_metrics_is_one_of_its_own(nodes: tuple[str, ...], ports: tuple[int, int], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        check(ManagedBrokers(nodes, port=ports[0], metrics_port=ports[1]), SNAPSHOT)
