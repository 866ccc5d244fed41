"""How long a connector has been seen running without tasks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_RUNNING, CONNECTOR_STATE_UNASSIGNED, Connector
from keelman.state.definitions.applying import ConnectorSteps

BARE, AWAY = Connector(state=CONNECTOR_STATE_RUNNING), Connector(state=CONNECTOR_STATE_UNASSIGNED)


class Seen:
    """Checks of one connector by operations, with a clock of its own."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        store = SimpleNamespace(database=SimpleNamespace(clock=lambda: self.now))
        self.steps = ConnectorSteps(cast(Any, store), cast(Any, None))

    def after(self, seconds: float, connector: Connector = BARE, *, name: str = "one", back: bool = False) -> float:
        self.now += timedelta(seconds=seconds)
        operation = SimpleNamespace(
            name=name, target=SimpleNamespace(name="orders"), back_time=self.now if back else None
        )
        return self.steps.without_tasks(cast(Any, operation), connector).total_seconds()


def test_the_time_of_looks_adds_up_until_it_is_seen_otherwise() -> None:
    seen = Seen()
    assert [seen.after(0.3), seen.after(0.3), seen.after(0.5)] == [0.0, 0.3, 0.8]
    assert [seen.after(0.3, AWAY), seen.after(0.3), seen.after(0.3)] == [0.0, 0.0, 0.3]


def test_a_look_that_took_long_is_no_time_in_which_it_was_seen() -> None:
    seen = Seen()
    assert [seen.after(0), seen.after(8), seen.after(-7200), seen.after(0.5)] == [0.0, 1.0, 1.0, 1.5]


def test_each_operation_sees_for_itself_and_so_does_its_way_back() -> None:
    seen = Seen()
    assert [seen.after(0), seen.after(1), seen.after(1, name="two"), seen.after(1, name="two")] == [0.0, 1.0, 0.0, 1.0]
    assert [seen.after(1, name="two", back=True), seen.after(1, name="two", back=True)] == [0.0, 1.0]
