"""The status of a connector for Ohara's clients."""

import pytest

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorState, ConnectorTask
from keelman.gateway.ohara.connectors.life import absent, present

NODES = {"10.0.0.1:8083": "n0", "10.0.0.2:8083": "n1"}


def connector(own: str, *tasks: str, trace: str = "") -> Connector:
    """A connector on n0, with tasks on n1."""
    connector_tasks = [
        ConnectorTask(task=n, state=value_of(s), worker_id="10.0.0.2:8083", trace=trace if s == "FAILED" else "")
        for n, s in enumerate(tasks)
    ]
    return Connector(state=value_of(own), worker_id="10.0.0.1:8083", tasks=connector_tasks)


def value_of(state: str) -> ConnectorState.ValueType:
    """The state by its word in Connect."""
    return ConnectorState.Value(f"CONNECTOR_STATE_{state}")


@pytest.mark.parametrize(
    ("own", "tasks", "applying", "state"),
    [
        ("RUNNING", ["RUNNING"], False, "RUNNING"),
        ("RUNNING", ["RUNNING", "FAILED"], False, "RUNNING"),
        ("RUNNING", ["FAILED"], False, "FAILED"),
        ("FAILED", [], False, "FAILED"),
        ("PAUSED", ["PAUSED"], False, "PAUSED"),
        ("STOPPED", [], False, "PAUSED"),
        ("UNASSIGNED", [], False, "UNASSIGNED"),
        ("RESTARTING", ["RUNNING"], False, "UNASSIGNED"),
        ("RUNNING", [], False, "FAILED"),
        ("RUNNING", [], True, "UNASSIGNED"),
    ],
)
def test_the_state_is_summed_up_from_connector_and_tasks(
    own: str, tasks: list[str], applying: bool, state: str
) -> None:
    assert present(connector(own, *tasks), NODES, applying=applying, query_time=1)["state"] == state


def test_tasks_come_first_and_the_connector_is_their_coordinator() -> None:
    actual_present = present(
        connector("RUNNING", "RUNNING", "FAILED", trace="at a.B"), NODES, applying=False, query_time=1
    )
    assert actual_present["tasksStatus"] == [
        {"state": "RUNNING", "nodeName": "n1", "coordinator": False},
        {"state": "FAILED", "nodeName": "n1", "coordinator": False, "error": "at a.B"},
        {"state": "RUNNING", "nodeName": "n0", "coordinator": True},
    ]
    assert actual_present["error"] == "at a.B"
    assert actual_present["aliveNodes"] == ["n0", "n1"]


def test_a_worker_that_no_node_is_known_of_is_named_by_its_host() -> None:
    actual_present = present(connector("RUNNING"), {}, applying=False, query_time=1)
    assert actual_present["tasksStatus"][0]["nodeName"] == "10.0.0.1"
    unassigned = present(Connector(), {}, applying=False, query_time=1)
    assert unassigned["tasksStatus"][0]["nodeName"] == "unknown"
    assert "error" not in unassigned


def test_what_is_left_to_copy_is_a_meter_of_the_node() -> None:
    single_connector = connector("RUNNING", "RUNNING")
    assert present(single_connector, NODES, applying=False, query_time=7)["nodeMetrics"] == {}
    single_connector.lag_records = 3
    (meter,) = present(single_connector, NODES, applying=False, query_time=7)["nodeMetrics"]["n0"]["meters"]
    assert (meter["name"], meter["value"], meter["unit"], meter["queryTime"]) == ("lag", 3.0, "records", 7)


def test_a_connector_that_is_not_there_has_no_state() -> None:
    assert absent() == {"aliveNodes": [], "tasksStatus": [], "nodeMetrics": {}}
    assert absent("no worker")["error"] == "no worker"
