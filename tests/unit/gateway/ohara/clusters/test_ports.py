"""The table of ports of running clusters."""

from __future__ import annotations

import pytest

from keelman.gateway.ohara.clusters.ports import Holder, check_ports
from keelman.gateway.ohara.wire.errors import OharaError
from keelman.gateway.ohara.wire.keys import ObjectKey

BK, WK = ObjectKey("default", "bk"), ObjectKey("g", "wk")
RUNNING = [Holder("broker", BK, frozenset({9092, 9093})), Holder("worker", WK, frozenset({8083}))]


def test_ports_that_nobody_has_are_free() -> None:
    check_ports(Holder("worker", BK, frozenset({1, 2})), RUNNING)


def test_a_cluster_may_have_its_own_ports() -> None:
    check_ports(Holder("broker", BK, frozenset({9092})), RUNNING)


def test_who_has_them_is_said_of_each() -> None:
    with pytest.raises(OharaError) as caught:
        check_ports(Holder("worker", ObjectKey("default", "new"), frozenset({9093, 8083, 9092, 1})), RUNNING)
    assert (caught.value.status, caught.value.code) == (400, "java.lang.IllegalArgumentException")
    assert caught.value.message == (
        'ports:9092,9093 are used by broker cluster:{"group":"default","name":"bk"} '
        "(the port is generated randomly if it is ignored from request);"
        'ports:8083 are used by worker cluster:{"group":"g","name":"wk"} '
        "(the port is generated randomly if it is ignored from request)"
    )
