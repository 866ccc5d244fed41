"""The answers about a connector's life, from its definition and its worker cluster."""

from keelman.api.connect.v1 import broker_cluster_pb2 as states
from keelman.api.connect.v1 import connector_definition_pb2 as goals
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinition
from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_RUNNING
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.gateway.ohara.connectors.life import is_there, life


def cluster(state: states.ClusterState.ValueType = states.CLUSTER_STATE_RUNNING, ready: int = 1) -> WorkerCluster:
    """A worker cluster."""
    worker_cluster = WorkerCluster(name="wk")
    worker_cluster.status.state, worker_cluster.status.ready_workers, worker_cluster.status.message = (
        state,
        ready,
        "" if ready else "it died",
    )
    return worker_cluster


def definition(
    goal: str, applied: str, *, reported: bool = False, applying: bool = False, drifted: bool = False, message: str = ""
) -> ConnectorDefinition:
    """A definition."""
    definition = ConnectorDefinition(goal=goals.DefinitionGoal.Value(f"DEFINITION_GOAL_{goal}"))
    definition.status.applied_goal = goals.DefinitionGoal.Value(f"DEFINITION_GOAL_{applied}")
    definition.status.applying, definition.status.drifted, definition.status.message = (
        applying,
        drifted,
        message,
    )
    if reported:
        definition.status.connector.state = CONNECTOR_STATE_RUNNING
        definition.status.connector.tasks.add(state=CONNECTOR_STATE_RUNNING)
    return definition


def state(actual_definition: ConnectorDefinition, at: WorkerCluster | None = None) -> tuple[str | None, str | None]:
    """Returns state and error."""
    fields = life(actual_definition, at or cluster(), {}, query_time=1)
    return fields.get("state"), fields.get("error")


def test_a_new_connector_and_a_stopped_one_have_no_state() -> None:
    assert state(definition("ABSENT", "ABSENT")) == (None, None)
    assert state(definition("ABSENT", "ABSENT", reported=True)) == (None, None)  # the report is older


def test_a_started_connector_waits_for_its_first_report() -> None:
    assert state(definition("RUNNING", "ABSENT", applying=True)) == ("UNASSIGNED", None)
    assert state(definition("RUNNING", "RUNNING")) == ("UNASSIGNED", None)
    assert state(definition("RUNNING", "RUNNING", reported=True)) == ("RUNNING", None)


def test_a_refused_start_says_why() -> None:
    assert state(definition("RUNNING", "ABSENT", message="no class a.B")) == (None, "no class a.B")


def test_a_connector_that_somebody_deleted_is_not_there() -> None:
    lost = definition("RUNNING", "RUNNING", drifted=True)
    lost.status.drifts.append("the worker cluster does not have it")
    assert not is_there(lost)
    assert state(lost) == (None, "the worker cluster does not have it")


def test_workers_that_are_down_are_told_and_stopped_ones_are_not() -> None:
    running = definition("RUNNING", "RUNNING", reported=True)
    down = cluster(states.CLUSTER_STATE_DEGRADED, ready=0)
    assert state(running, down) == (None, "no worker of its worker cluster can be reached: it died")
    assert state(running, cluster(states.CLUSTER_STATE_STOPPED, ready=0)) == (None, None)
    assert state(definition("ABSENT", "ABSENT"), down) == (None, None)
    assert life(running, None, {}, query_time=1)["tasksStatus"] == []
