"""Records, plugins and problems in the form that users see."""

from __future__ import annotations

import pytest

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.node.v1.node_pb2 import Node, NodeSpec
from keelman.cli import kinds
from keelman.cli.client.plugin_classes import ListedClass
from keelman.cli.commands.connectors.validate import problems_of
from keelman.cli.commands.get import checked_state
from keelman.cli.commands.records.peek import document, lines
from keelman.cli.output.lines import TopicLine
from keelman.cli.output.printing import print_list
from keelman.cli.output.states import state_of, states
from keelman.cli.selectors import selector_of
from keelman.kafka.browsing import PeekedRecord
from keelman.model.errors import InvalidArgument


def test_a_record_is_shown_as_text_where_it_is_text() -> None:
    record = PeekedRecord(1, 7, 0, b"k", b'{"a":1}', (("h", b"x\x1b[2J"), ("raw", b"\xff"), ("none", None)))
    assert list(lines(record)) == [
        "1@7  1970-01-01 00:00:00Z  key k",
        '  {"a":1}',
        "  headers h=x\\x1b[2J, raw=base64 /w==, none=null",
    ]
    assert document(record)["headers"][1:] == [
        {"key": "raw", "value": {"base64": "/w=="}},
        {"key": "none", "value": None},
    ]


def test_a_record_may_have_no_time_no_key_and_no_value() -> None:
    assert list(lines(PeekedRecord(0, 0, None, None, None, ()))) == ["0@0  key null", "  null"]


def test_topics_and_plugins_have_tables_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(kinds.TOPICS, [TopicLine("lines", 3, 1, 1200, "lines", "default")], "table")
    titles = ["NAME", "STATE", "PARTITIONS", "REPLICATION", "OFFSETS", "BROKERS"]
    assert capsys.readouterr().out.split() == [*titles, "lines", "-", "3", "1", "1,200", "default"]
    plugin = ListedClass("org.acme.TicksSourceConnector", "source", "1.0")
    print_list(kinds.PLUGIN_CLASSES, [plugin], "name")
    assert capsys.readouterr().out == "plugin/org.acme.TicksSourceConnector\n"
    assert plugin.names == ("org.acme.TicksSourceConnector", "TicksSourceConnector", "TicksSource")
    print_list(kinds.PLUGIN_CLASSES, [plugin], "json")
    assert '"type": "source"' in capsys.readouterr().out


@pytest.mark.parametrize("kind", [k for k in kinds.KINDS if states(k)])
def test_each_kind_with_states_names_them(kind: kinds.Kind) -> None:
    assert checked_state(kind, states(kind)[0].lower()) == states(kind)[0]
    with pytest.raises(InvalidArgument, match=states(kind)[-1]):
        checked_state(kind, "NOSUCH")


def test_a_state_is_that_of_the_table() -> None:
    assert state_of(kinds.CONNECTORS, Connector(state="CONNECTOR_STATE_PAUSED")) == "PAUSED"


def test_problems_are_told_by_key() -> None:
    def value(name: str, *errors: str) -> dict[str, object]:
        return {"definition": {}, "value": {"name": name, "errors": list(errors)}}

    assert problems_of({"configs": [value("topic", "late", "early"), value("file"), value("a", "x")]}) == [
        {"key": "a", "problem": "x"},
        {"key": "topic", "problem": "early"},
        {"key": "topic", "problem": "late"},
    ]


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        ([], ["a", "b", "c"]),
        (["disk=ssd"], ["a"]),
        (["disk"], ["a", "b"]),
        (["disk!=ssd"], ["b", "c"]),
        (["disk,zone=1"], ["b"]),
        (["disk", "zone!=1"], ["a"]),
        (["empty="], ["c"]),
        (["nosuch"], []),
    ],
)
def test_labels_choose(texts: list[str], chosen: list[str]) -> None:
    labels = {"a": {"disk": "ssd"}, "b": {"disk": "hdd", "zone": "1"}, "c": {"empty": ""}}
    nodes = [Node(name=name, spec=NodeSpec(labels=of)) for name, of in labels.items()]
    selector = selector_of(kinds.NODES, texts)
    assert [node.name for node in filter(selector, nodes)] == chosen
    assert selector.equal == {"disk=ssd": {"disk": "ssd"}, "disk,zone=1": {"zone": "1"}, "empty=": {"empty": ""}}.get(
        "".join(texts), {}
    )
