"""The differences between a connector and its applied definition."""

from datetime import UTC, datetime, timedelta

import pytest

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorState
from keelman.model.connectors.connector_definition import (
    AppliedDefinition,
    ConnectorDefinition,
    ConnectorDefinitionSpec,
    DefinitionGoal,
)
from keelman.state.definitions.drift import drifts

THEN = datetime(2026, 1, 1, tzinfo=UTC)
LATER = THEN + timedelta(minutes=1)
CONFIG = {"tasks.max": "1", "db.password": "s3cret", "db.url": "jdbc:x://alice:wonder@h/db"}
SHOWN = {"tasks.max": "1", "db.password": "[hidden]", "db.url": "jdbc:x://[hidden]@h/db", "name": "orders"}


def definition(goal: str = "RUNNING", uid: str = "u1", *, applying: bool = False) -> ConnectorDefinition:
    applied = AppliedDefinition(1, THEN, DefinitionGoal(goal), CONFIG, uid)
    spec = ConnectorDefinitionSpec("demo", "orders", {"of the": "next generation"})
    return ConnectorDefinition("orders", "d1", THEN, THEN, 2, spec, applied=applied, applying=applying)


def connector(state: str = "RUNNING", uid: str = "", **config: str | None) -> Connector:
    texts = {key.replace("_", "."): text for key, text in (SHOWN | config).items()}
    stored_texts = {key: text for key, text in texts.items() if text is not None}
    return Connector(
        name="orders", state=ConnectorState.Value(f"CONNECTOR_STATE_{state}"), config=stored_texts, uid=uid
    )


@pytest.mark.parametrize(
    ("goal", "actual_connector", "expected"),
    [
        ("RUNNING", connector(), []),
        ("RUNNING", connector("FAILED"), []),
        ("RUNNING", connector("UNASSIGNED"), []),
        ("RUNNING", connector("PAUSED"), ["state: PAUSED, was applied as RUNNING"]),
        ("PAUSED", connector("STOPPED"), ["state: STOPPED, was applied as PAUSED"]),
        ("STOPPED", connector("RUNNING"), ["state: RUNNING, was applied as STOPPED"]),
        ("RUNNING", None, ["connector is missing; the applied goal is RUNNING"]),
        ("ABSENT", connector(), ["connector exists; the applied goal is ABSENT"]),
        ("ABSENT", None, []),
        ("RUNNING", connector(uid="u1"), []),
        (
            "RUNNING",
            connector(uid="u2"),
            ["connector: it was deleted and created again, its uid is u2, was applied as u1"],
        ),
        (
            "RUNNING",
            connector("STOPPED", tasks_max="2", db_password=None, file="/x"),
            [
                "config: db.password is missing; the applied value is [hidden]",
                "config: file is /x, was not there when applied",
                "config: tasks.max is 2, was applied as 1",
                "state: STOPPED, was applied as RUNNING",
            ],
        ),
    ],
)
def test_drifts(goal: str, actual_connector: Connector | None, expected: list[str]) -> None:
    assert drifts(definition(goal), actual_connector, LATER) == expected


def test_what_is_being_applied_or_was_a_moment_ago_has_not_drifted() -> None:
    assert drifts(definition(applying=True), None, LATER) == []
    assert drifts(definition(), None, THEN + timedelta(seconds=1)) == []


def test_before_the_first_time_a_connector_is_not_expected() -> None:
    spec = ConnectorDefinitionSpec("demo", "orders", CONFIG)
    new = ConnectorDefinition("orders", "d1", THEN, THEN, 1, spec)
    assert drifts(new, None, LATER) == []
    assert drifts(new, connector(), LATER) == ["connector exists; the applied goal is ABSENT"]
