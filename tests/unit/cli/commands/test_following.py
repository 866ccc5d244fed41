"""The lines of `get --watch` for plugins, which have a name and a version, and for connectors."""

from __future__ import annotations

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED, CONNECTOR_STATE_RUNNING, Connector
from keelman.api.connect.v1.plugin_pb2 import Plugin
from keelman.api.event.v1.event_pb2 import EVENT_TYPE_CREATED, EVENT_TYPE_DELETED, EVENT_TYPE_UPDATED, Event
from keelman.cli import kinds
from keelman.cli.commands.following import LAG_SECONDS, REPORTED_SECONDS, WatchedResources, pace_of
from keelman.cli.output.printing import table

ONE, TWO = Plugin(name="acme", version="1"), Plugin(name="acme", version="2")


def event(kind: int, plugin: Plugin) -> Event:
    return Event(type=kind, name=f"{plugin.name}/{plugin.version}", plugin=plugin)  # type: ignore[arg-type]


def test_versions_are_apart_and_what_only_lists_say_is_shown() -> None:
    followed = WatchedResources(kinds.PLUGINS, lambda plugin: True)
    assert followed.fold([event(EVENT_TYPE_CREATED, ONE), event(EVENT_TYPE_CREATED, TWO)]) == [
        ("acme:1", ONE), ("acme:2", TWO),
    ]  # fmt: skip
    used = Plugin(name="acme", version="2", worker_clusters=["demo"])
    assert followed.report([ONE, used]) == [("acme:2", used)]
    named_plugin = Plugin(name="acme", version="2", description="new")
    changed = Plugin(name="acme", version="2", description="new", worker_clusters=["demo"])
    assert followed.fold([event(EVENT_TYPE_UPDATED, named_plugin)]) == [("acme:2", changed)]
    assert followed.fold([event(EVENT_TYPE_DELETED, ONE)]) == [("acme:1", None)]
    assert followed.all() == [changed]
    assert table(kinds.PLUGINS, followed.all(), wide=False).row_count == 1


def test_what_connectors_have_left_is_shown_and_no_change_of_theirs() -> None:
    runs = Connector(worker_cluster="demo", name="in", state=CONNECTOR_STATE_RUNNING)
    failed = Connector(worker_cluster="demo", name="in", state=CONNECTOR_STATE_FAILED)
    followed = WatchedResources(kinds.CONNECTORS, lambda value: True)
    assert followed.take([("demo/in", runs)]) == [("demo/in", runs)]
    lagging = Connector(worker_cluster="demo", name="in", state=CONNECTOR_STATE_RUNNING, lag_records=7)
    assert followed.report([lagging]) == [], "a line is printed for no lag"
    assert followed.all() == [lagging]
    assert followed.report([runs]) == []
    assert not followed.all()[0].HasField("lag_records"), "an unknown value is not 0"
    assert followed.take([("demo/in", failed)]) == [("demo/in", failed)]
    assert followed.take([("demo/in", None)]) == [("demo/in", None)]
    assert followed.all() == []


def test_all_connectors_are_listed_for_their_lag_less_often() -> None:
    assert (pace_of(kinds.CONNECTORS), pace_of(kinds.NODES)) == (LAG_SECONDS, REPORTED_SECONDS) == (10.0, 2.0)
