"""Offsets of sources and sinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recorded.rest.rest_step import EMPTY_BODIES, SINK, step
from support.worker.rest import Step


def source_offsets() -> Iterator[Step]:
    """Offsets of the source."""
    path = "/connectors/src/offsets"
    part = {"filename": "/nowhere/in"}
    entry = {"offsets": [{"partition": part, "offset": {"position": 5}}]}
    yield step("offsets: none", "GET", path)
    yield step("offsets: running, alter", "PATCH", path, entry)
    yield step("offsets: running, reset", "DELETE", path)
    yield step("stop", "PUT", "/connectors/src/stop")
    yield step("stopped", "GET", "/connectors/src/status", of="src", until=("STOPPED",))
    yield step("stopped: tasks", "GET", "/connectors/src/tasks")
    yield step("stop again", "PUT", "/connectors/src/stop")
    for name, body in (
        *EMPTY_BODIES,
        ("null list", '{"offsets":null}'),
        ("empty list", '{"offsets":[]}'),
        ("object for a list", '{"offsets":{}}'),
        ("text", '{"offsets":"x"}'),
        ("null in the list", '{"offsets":[null]}'),
        ("number in the list", '{"offsets":[1]}'),
        ("unknown field", '{"offsets":[],"x":1}'),
        ("no partition", '{"offsets":[{"offset":{"position":1}}]}'),
        ("partition null", '{"offsets":[{"partition":null,"offset":{"position":1}}]}'),
        ("partition empty", '{"offsets":[{"partition":{},"offset":{"position":1}}]}'),
        ("partition text", '{"offsets":[{"partition":"x","offset":{"position":1}}]}'),
        ("entry with more", {"offsets": [{"partition": part, "offset": {"position": 1}, "x": 1}]}),
        ("no filename", '{"offsets":[{"partition":{"a":"b"},"offset":{"position":1}}]}'),
        ("position text", {"offsets": [{"partition": part, "offset": {"position": "x"}}]}),
        ("position negative", {"offsets": [{"partition": part, "offset": {"position": -1}}]}),
        ("position null", {"offsets": [{"partition": part, "offset": {"position": None}}]}),
        ("position float", {"offsets": [{"partition": part, "offset": {"position": 1.5}}]}),
        ("position missing", {"offsets": [{"partition": part, "offset": {"x": 1}}]}),
        ("offset empty", {"offsets": [{"partition": part, "offset": {}}]}),
        ("offset text", {"offsets": [{"partition": part, "offset": "x"}]}),
        ("twice the same", {"offsets": [{"partition": part, "offset": {"position": 1}}] * 2}),
        ("nested", '{"offsets":[{"partition":{"filename":{"a":1}},"offset":{"position":1}}]}'),
    ):
        yield step(f"alter: {name}", "PATCH", path, body)
    yield step("alter: as text", "PATCH", path, entry, kind="text/plain")
    yield step("alter: still none", "GET", path)
    yield step("alter", "PATCH", path, entry)
    yield step("altered", "GET", path)
    more = {"filename": "/nowhere/else"}
    two = {
        "offsets": [
            {"partition": part, "offset": {"position": 9}},
            {"partition": more, "offset": {"position": 3, "x": "\u00e9"}},
        ]
    }
    yield step("alter two", "PATCH", path, two)
    yield step(
        "alter: numbers in a partition",
        "PATCH",
        path,
        '{"offsets":[{"partition":{"filename":"f","n":1,"d":1.5,"b":true},"offset":{"position":12345678901}}]}',
    )
    yield step(
        "alter away", "PATCH", path, '{"offsets":[{"partition":{"n":1,"filename":"f","b":true,"d":1.5},"offset":null}]}'
    )
    yield step("alter away no offset", "PATCH", path, {"offsets": [{"partition": more}]})
    yield step("altered again", "GET", path)
    yield step(
        "alter away what is not there", "PATCH", path, '{"offsets":[{"partition":{"filename":"zzz"},"offset":null}]}'
    )
    yield step("reset", "DELETE", path)
    yield step("reset: none", "GET", path)
    yield step("reset again", "DELETE", path)
    yield step("resume from stop", "PUT", "/connectors/src/resume")
    yield step("running again", "GET", "/connectors/src/status", of="src", until=("RUNNING", "RUNNING"))


def sink_offsets() -> Iterator[Step]:
    """Offsets of a sink."""
    path = "/connectors/snk/offsets"

    def entry(partition: Any, offset: Any) -> dict[str, Any]:
        return {"offsets": [{"partition": partition, "offset": offset}]}

    lines = {"kafka_topic": "rest-lines", "kafka_partition": 0}
    yield step(
        "create sink",
        "POST",
        "/connectors",
        {"name": "snk", "config": {**SINK, "tasks.max": 2}, "initial_state": "STOPPED"},
    )
    yield step("sink stopped", "GET", "/connectors/snk/status", of="snk", until=("STOPPED",))
    yield step("sink info", "GET", "/connectors/snk")
    yield step("sink offsets: none", "GET", path)
    yield step("sink reset: none", "DELETE", path)
    for name, body in (
        ("no partition", entry({"kafka_topic": "rest-lines"}, {"kafka_offset": 1})),
        ("no topic", entry({"kafka_partition": 0}, {"kafka_offset": 1})),
        ("topic null", entry({"kafka_topic": None, "kafka_partition": 0}, {"kafka_offset": 1})),
        ("partition null", entry({"kafka_topic": "rest-lines", "kafka_partition": None}, {"kafka_offset": 1})),
        ("partition text", entry({"kafka_topic": "rest-lines", "kafka_partition": "x"}, {"kafka_offset": 1})),
        ("partition list", entry({"kafka_topic": "rest-lines", "kafka_partition": []}, {"kafka_offset": 1})),
        ("partition float", entry({"kafka_topic": "rest-lines", "kafka_partition": 1.5}, {"kafka_offset": 1})),
        ("topic number", entry({"kafka_topic": 5, "kafka_partition": 0}, {"kafka_offset": 1})),
        ("partition negative", entry({"kafka_topic": "rest-lines", "kafka_partition": -1}, {"kafka_offset": 1})),
        ("partition unknown", entry({"kafka_topic": "rest-lines", "kafka_partition": 77}, {"kafka_offset": 1})),
        ("topic unknown", entry({"kafka_topic": "unknown", "kafka_partition": 0}, {"kafka_offset": 1})),
        ("partition null itself", entry(None, {"kafka_offset": 1})),
        ("more in the partition", entry({**lines, "x": 1}, {"kafka_offset": 1})),
        ("offset missing", entry(lines, {"x": 1})),
        ("offset null", entry(lines, {"kafka_offset": None})),
        ("offset text", entry(lines, {"kafka_offset": "x"})),
        ("offset float", entry(lines, {"kafka_offset": 1.5})),
        ("offset negative", entry(lines, {"kafka_offset": -5})),
        ("offset huge", entry(lines, {"kafka_offset": 10**30})),
        ("offset list", entry(lines, {"kafka_offset": [1]})),
        ("twice", {"offsets": [{"partition": lines, "offset": {"kafka_offset": n}} for n in (1, 2)]}),
        ("empty offset", entry(lines, {})),
    ):
        yield step(f"sink alter: {name}", "PATCH", path, body)
    yield step(
        "sink alter: text",
        "PATCH",
        path,
        entry({"kafka_topic": "rest-lines", "kafka_partition": "1"}, {"kafka_offset": "10"}),
    )
    yield step("sink alter: number", "PATCH", path, entry(lines, {"kafka_offset": 7}))
    yield step("sink offsets", "GET", path)
    yield step("sink alter: away", "PATCH", path, entry({"kafka_topic": "rest-lines", "kafka_partition": 1}, None))
    yield step("sink offsets left", "GET", path)
    yield step("a zombie", "JOIN", "connect-snk/rest-lines")
    yield step("zombie: alter", "PATCH", path, entry(lines, {"kafka_offset": 8}))
    yield step("zombie: away", "PATCH", path, entry(lines, None))
    yield step("zombie: reset", "DELETE", path)
    yield step("no zombie", "LEAVE", "connect-snk/rest-lines")
    yield step("sink reset", "DELETE", path)
    yield step("sink reset: gone", "GET", path)
    yield step("sink running", "PUT", "/connectors/snk/resume")
    yield step("sink status", "GET", "/connectors/snk/status", of="snk", until=("RUNNING", "RUNNING", "RUNNING"))
    yield step("sink running: alter", "PATCH", path, entry(lines, {"kafka_offset": 7}))
    yield step("sink running: reset", "DELETE", path)
    yield step("sink paused", "PUT", "/connectors/snk/pause")
    yield step(
        "sink paused: alter",
        "PATCH",
        path,
        entry(lines, {"kafka_offset": 7}),
        of="snk",
        until=("PAUSED", "PAUSED", "PAUSED"),
    )
    yield step("sink paused: reset", "DELETE", path)
    yield step("delete sink", "DELETE", "/connectors/snk")


def without_topics() -> Iterator[Step]:
    """A worker that does not track topics; and offsets of a mirror, and of a source without a file."""
    yield step("tracking off: topics", "GET", "/connectors/nope/topics")
    yield step("tracking off: reset", "PUT", "/connectors/nope/topics/reset")
    mirror = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "{broker}",
        "target.cluster.bootstrap.servers": "{broker}",
        "topics": "no-such-topic",
    }
    yield step("create mirror", "POST", "/connectors", {"name": "mm", "config": mirror, "initial_state": "STOPPED"})
    good: dict[str, Any] = {"cluster": "a", "partition": 0, "topic": "t"}
    for name, partition, offset in (
        ("good", good, {"offset": 9}),
        ("more in it", {**good, "x": 1}, {"offset": 9, "y": "z"}),
        ("partition null", None, {"offset": 9}),
        ("partition empty", {}, {"offset": 9}),
        ("no cluster", {"partition": 0, "topic": "t"}, {"offset": 9}),
        ("cluster number", {**good, "cluster": 5}, {"offset": 9}),
        ("no topic", {"cluster": "a", "partition": 0}, {"offset": 9}),
        ("topic null", {**good, "topic": None}, {"offset": 9}),
        ("no partition", {"cluster": "a", "topic": "t"}, {"offset": 9}),
        ("partition text", {**good, "partition": "0"}, {"offset": 9}),
        ("partition float", {**good, "partition": 1.5}, {"offset": 9}),
        ("partition huge", {**good, "partition": 1 << 40}, {"offset": 9}),
        ("partition negative", {**good, "partition": -1}, {"offset": 9}),
        ("no offset", good, {"x": 9}),
        ("offset empty", good, {}),
        ("offset null", good, {"offset": None}),
        ("offset text", good, {"offset": "9"}),
        ("offset float", good, {"offset": 1.5}),
        ("offset negative", good, {"offset": -9}),
        ("garbage away", {"g": [1]}, None),
        ("null away", None, None),
        ("away", {**good, "x": 1}, None),
    ):
        body = {"offsets": [{"partition": partition, "offset": offset}]}
        yield step(f"mirror alter: {name}", "PATCH", "/connectors/mm/offsets", body)
    yield step("mirror offsets", "GET", "/connectors/mm/offsets")
    yield step("mirror reset", "DELETE", "/connectors/mm/offsets")
    yield step("mirror reset: gone", "GET", "/connectors/mm/offsets")
    yield step("delete mirror", "DELETE", "/connectors/mm")
    config = {"connector.class": "FileStreamSource", "topic": "rest-lines"}
    yield step("create stdin", "POST", "/connectors", {"name": "in", "config": config, "initial_state": "STOPPED"})
    entry = {"offsets": [{"partition": {"filename": "f"}, "offset": {"position": 1}}]}
    yield step("stdin alter", "PATCH", "/connectors/in/offsets", entry)
    yield step("stdin reset", "DELETE", "/connectors/in/offsets")
    yield step("delete stdin", "DELETE", "/connectors/in")
