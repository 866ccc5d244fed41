"""The requests that are recorded: every endpoint, asked well, badly and with ill will."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rest_kit import Step

SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "rest-lines"}
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "topics": "rest-lines"}
GROUP = "rest-recorded"


def _step(
    name: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    kind: str | None = "application/json",
    more: Mapping[str, str] | None = None,
    of: str = "",
    until: Sequence[str] = (),
) -> Step:
    """A body that is text or bytes is sent as it stands, anything else as JSON."""
    raw = body if body is None or isinstance(body, str | bytes) else json.dumps(body, ensure_ascii=False)
    headers = {} if kind is None else {"Content-Type": kind}
    return Step(name, method, path, raw, {**headers, **(more or {})}, of, until)


def paths() -> Iterator[Step]:
    """Paths and methods."""
    yield _step("root", "GET", "/")
    yield _step("health", "GET", "/health")
    yield _step("no connectors", "GET", "/connectors")
    yield _step("no connectors, expanded", "GET", "/connectors?expand=status&expand=info")
    yield _step("unknown path", "GET", "/nothing")
    yield _step("unknown path below a connector", "GET", "/connectors/nope/nothing")
    yield _step("removed path", "GET", "/connectors/nope/tasks-config")
    yield _step("path in capitals", "GET", "/CONNECTORS")
    yield _step("slash at the end", "GET", "/connectors/")
    yield _step("two slashes", "GET", "//connectors")
    yield _step("dots in a path", "GET", "/connectors/../connectors")
    for method, path in (
        ("POST", "/"),
        ("DELETE", "/"),
        ("PUT", "/connectors"),
        ("DELETE", "/connectors"),
        ("PATCH", "/connectors"),
        ("POST", "/connectors/nope"),
        ("PUT", "/connectors/nope"),
        ("DELETE", "/connectors/nope/config"),
        ("POST", "/connectors/nope/config"),
        ("PUT", "/connectors/nope/restart"),
        ("POST", "/connectors/nope/pause"),
        ("POST", "/connectors/nope/offsets"),
        ("GET", "/connectors/nope/restart"),
        ("GET", "/connectors/nope/tasks/0/restart"),
        ("GET", "/connectors/nope/topics/reset"),
        ("POST", "/connector-plugins"),
        ("GET", "/connector-plugins/FileStreamSource/config/validate"),
        ("DELETE", "/admin/loggers/root"),
        ("TRACE", "/connectors"),
        ("PROPFIND", "/connectors"),
    ):
        yield _step(f"{method} on {path}", method, path)
    for path in ("/", "/connectors", "/connectors/nope", "/connectors/nope/config"):
        yield _step(f"HEAD {path}", "HEAD", path)
        yield _step(f"OPTIONS {path}", "OPTIONS", path)
    yield _step("answer as text wanted", "GET", "/connectors", "", more={"Accept": "text/plain"})
    yield _step("answer as anything wanted", "GET", "/connectors", "", more={"Accept": "text/html, */*;q=0.1"})


def unknown() -> Iterator[Step]:
    """A connector that is not there."""
    x = "/connectors/nope"
    for method, rest in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/config"),
        ("GET", "/status"),
        ("GET", "/tasks"),
        ("GET", "/tasks/0/status"),
        ("POST", "/tasks/0/restart"),
        ("GET", "/topics"),
        ("PUT", "/topics/reset"),
        ("GET", "/offsets"),
        ("DELETE", "/offsets"),
        ("PUT", "/pause"),
        ("PUT", "/resume"),
        ("PUT", "/stop"),
        ("POST", "/restart"),
        ("POST", "/restart?includeTasks=true"),
        ("POST", "/restart?onlyFailed=true"),
    ):
        yield _step(f"unknown: {method} {rest}", method, x + rest)
    yield _step("unknown: PATCH /config", "PATCH", x + "/config", {"a": "b"})
    one = {"offsets": [{"partition": {"filename": "/nowhere/in"}, "offset": {"position": 1}}]}
    yield _step("unknown: PATCH /offsets", "PATCH", x + "/offsets", one)
    yield _step("unknown: PATCH /offsets, empty", "PATCH", x + "/offsets", {"offsets": []})
    for name in (
        "a%2Fb",
        "a%20b",
        "%C3%A9",
        "%00",
        "%0A",
        "%",
        "%zz",
        "a;b=c",
        "a+b",
        "a%25b",
        "%2e%2e",
        "a%5Cb",
        "x" * 300,
    ):
        yield _step(f"unknown: name {name[:20]}", "GET", f"/connectors/{name}")
        yield _step(f"unknown: status of {name[:20]}", "GET", f"/connectors/{name}/status")


def bad_creates() -> Iterator[Step]:
    """POST /connectors that must not create anything."""
    for name, body in (
        ("empty", ""),
        ("blank", "  "),
        ("broken", "{"),
        ("list", "[]"),
        ("null", "null"),
        ("text", '"x"'),
        ("number", "1"),
        ("nothing in it", "{}"),
        ("no config", '{"name":"x"}'),
        ("no name", '{"config":{}}'),
        ("name in the config alone", '{"config":{"name":"y","connector.class":"FileStreamSource"}}'),
        ("config null", '{"name":"x","config":null}'),
        ("config list", '{"name":"x","config":[]}'),
        ("config text", '{"name":"x","config":"a=b"}'),
        ("config number", '{"name":"x","config":1}'),
        ("value object", '{"name":"x","config":{"a":{}}}'),
        ("value list", '{"name":"x","config":{"a":[1]}}'),
        ("name null", '{"name":null,"config":{}}'),
        ("name empty", '{"name":"","config":{}}'),
        ("name blank", '{"name":" \\t","config":{"connector.class":"FileStreamSource","topic":"t"}}'),
        ("name object", '{"name":{},"config":{}}'),
        ("name list", '{"name":[],"config":{}}'),
        ("unknown field", '{"name":"x","config":{},"extra":1}'),
        ("unknown field before", '{"extra":{"a":[1]},"name":"x","config":{"a":"b"}}'),
        ("state unknown", '{"name":"x","config":{},"initial_state":"WAITING"}'),
        ("state number", '{"name":"x","config":{},"initial_state":1}'),
        ("state number 7", '{"name":"x","config":{},"initial_state":7}'),
        ("state empty", '{"name":"x","config":{},"initial_state":""}'),
        ("state object", '{"name":"x","config":{},"initial_state":{}}'),
        ("trailing word", '{"name":"x","config":{"a":"b"}} x'),
        ("trailing comma", '{"name":"x","config":{"a":"b",}}'),
        ("comment", '{"name":"x",/* c */"config":{"a":"b"}}'),
        ("single quotes", "{'name':'x','config':{}}"),
        ("bare word", "{name:1}"),
        ("NaN", '{"name":"x","config":{"a":NaN}}'),
        ("raw control character", '{"name":"x\x01","config":{}}'),
        ("bad escape", '{"name":"\\q","config":{}}'),
        ("unfinished text", '{"name":"x'),
        ("unfinished word", '{"name":tru'),
        ("leading zero", '{"name":"x","config":{"a":01}}'),
        ("leading plus", '{"name":"x","config":{"a":+1}}'),
        ("no colon", '{"name" "x"}'),
        ("not UTF-8", b'{"name":"\xff","config":{}}'),
        ("byte order mark", b'\xef\xbb\xbf{"name":"x","config":{"a":"b"}}'),
        ("UTF-16", '{"name":"x","config":{"a":"b"}}'.encode("utf-16")),
        ("deep", '{"name":"x","config":' + "[" * 2000 + "]" * 2000 + "}"),
        ("no class", '{"name":"x","config":{"a":"b"}}'),
        ("no class, empty config", '{"name":"x","config":{}}'),
        ("class unknown", '{"name":"x","config":{"connector.class":"com.acme.No"}}'),
        ("class empty", '{"name":"x","config":{"connector.class":""}}'),
        ("class null", '{"name":"x","config":{"connector.class":null}}'),
        ("other name", '{"name":"x","config":{"name":"y","connector.class":"FileStreamSource","topic":"t"}}'),
        ("tasks.max wrong", {"name": "x", "config": {**SOURCE, "tasks.max": "many"}}),
        ("two wrong", {"name": "x", "config": {**SOURCE, "tasks.max": 0, "errors.tolerance": "some"}}),
        ("topic missing", {"name": "x", "config": {"connector.class": "FileStreamSource"}}),
        ("control character in the name", {"name": "a\u0001b", "config": SOURCE}),
        ("line end in the name", {"name": "a\nb", "config": SOURCE}),
    ):
        yield _step(f"create: {name}", "POST", "/connectors", body)
    good = {"name": "x", "config": {"a": "b"}}
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/xml",
        "application/octet-stream",
        "nonsense",
        "application/*",
        "*/*",
        "application/vnd.acme+json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "text/json",
    ):
        yield _step(f"create: as {kind}", "POST", "/connectors", good, kind=kind)
    yield _step("create: as nothing", "POST", "/connectors", good, kind=None)
    yield _step("create: answer as text wanted", "POST", "/connectors", good, more={"Accept": "text/plain"})
    yield _step("create: empty as nothing", "POST", "/connectors", kind=None)
    yield _step("still no connectors", "GET", "/connectors")


def lives() -> Iterator[Step]:
    """A source from its creation on."""
    values = '"flag":true,"pi":1.50,"big":12345678901234567890,"exp":1e3,"neg":-0,"no":false,"twice":"a","twice":"b",'
    config = '{"batch.size":7,' + values
    config += '"connector.class":"FileStreamSource","file":"/nowhere/in","topic":"rest-lines"}'
    yield _step("create", "POST", "/connectors", '{"name":" src ","config":' + config + "}")
    yield _step("running", "GET", "/connectors/src/status", of="src", until=("RUNNING", "RUNNING"))
    yield _step("info", "GET", "/connectors/src")
    yield _step("config", "GET", "/connectors/src/config")
    yield _step("tasks", "GET", "/connectors/src/tasks")
    yield _step("task status", "GET", "/connectors/src/tasks/0/status")
    for task in ("1", "-1", "abc", "99999999999", "0x0", "%30", "00", "+0", "1.0"):
        path = f"/connectors/src/tasks/{task}"
        yield _step(f"task {task} status", "GET", f"{path}/status", of="src", until=("RUNNING", "RUNNING"))
        if task not in ("%30", "00", "+0"):  # these are task 0, and what follows would meet it as it restarts
            yield _step(f"task {task} restart", "POST", f"{path}/restart")
    yield _step("create again", "POST", "/connectors", {"name": "src", "config": SOURCE})
    yield _step("create again, invalid", "POST", "/connectors", {"name": "src", "config": {"a": "b"}})
    for query in (
        "",
        "?expand=status",
        "?expand=info",
        "?expand=status&expand=info",
        "?expand=nonsense",
        "?expand=info&expand=x",
        "?expand=",
        "?expand=INFO",
        "?nothing=1",
    ):
        yield _step(f"list {query}", "GET", f"/connectors{query}")
    yield _step("update", "PUT", "/connectors/src/config", {**SOURCE, "batch.size": 7})
    yield _step("updated", "GET", "/connectors/src", of="src", until=("RUNNING", "RUNNING"))
    yield _step("update as it is", "PUT", "/connectors/src/config", {**SOURCE, "batch.size": 7})
    yield _step("update: other name", "PUT", "/connectors/src/config", {**SOURCE, "name": "dst"})
    yield _step("update: name with blanks", "PUT", "/connectors/src/config", {**SOURCE, "name": " src "})
    for name, body in (
        ("empty", ""),
        ("broken", "{"),
        ("list", "[]"),
        ("null", "null"),
        ("nothing in it", "{}"),
        ("value object", '{"a":{}}'),
        ("value null", '{"connector.class":"FileStreamSource","topic":"t","a":null}'),
        ("no class", '{"a":"b"}'),
        ("invalid", {**SOURCE, "tasks.max": "many"}),
        ("text", '"a"'),
    ):
        yield _step(f"update: {name}", "PUT", "/connectors/src/config", body)
    yield _step("update: as text", "PUT", "/connectors/src/config", SOURCE, kind="text/plain")
    yield _step("update: unknown and invalid", "PUT", "/connectors/nope/config", {"a": "b"})
    yield _step("after the bad updates", "GET", "/connectors/src/config")
    yield _step("patch", "PATCH", "/connectors/src/config", '{"batch.size":null,"a":1,"b":true}')
    yield _step("patch: nothing", "PATCH", "/connectors/src/config", "{}")
    for name, body in (
        ("empty", ""),
        ("broken", "{"),
        ("null", "null"),
        ("list", "[]"),
        ("value object", '{"a":{}}'),
        ("no class left", '{"connector.class":null}'),
        ("invalid", '{"tasks.max":"many"}'),
        ("other name", '{"name":"dst"}'),
        ("name back", '{"name":"src"}'),
        ("name away", '{"name":null}'),
        ("key away that is not there", '{"zzz":null}'),
    ):
        yield _step(f"patch: {name}", "PATCH", "/connectors/src/config", body)
    yield _step("patch: as text", "PATCH", "/connectors/src/config", "{}", kind="text/plain")
    yield _step("patched", "GET", "/connectors/src/config", of="src", until=("RUNNING", "RUNNING"))
    for query in (
        "",
        "?includeTasks=false",
        "?includeTasks=true",
        "?onlyFailed=true",
        "?includeTasks=true&onlyFailed=true",
        "?includeTasks=maybe",
        "?includeTasks=",
        "?includeTasks=TRUE",
        "?includeTasks=true&includeTasks=false",
        "?forward=maybe",
        "?forward=true",
        "?forward=false",
    ):
        yield _step(
            f"restart {query}", "POST", f"/connectors/src/restart{query}", of="src", until=("RUNNING", "RUNNING")
        )
    yield _step("restart with a body", "POST", "/connectors/src/restart", "{", of="src", until=("RUNNING", "RUNNING"))
    yield _step("task restart", "POST", "/connectors/src/tasks/0/restart", of="src", until=("RUNNING", "RUNNING"))
    yield _step("pause", "PUT", "/connectors/src/pause", of="src", until=("RUNNING", "RUNNING"))
    yield _step("paused", "GET", "/connectors/src/status", of="src", until=("PAUSED", "PAUSED"))
    yield _step("pause again", "PUT", "/connectors/src/pause")
    yield _step("pause with a body", "PUT", "/connectors/src/pause", "x", kind="text/plain")
    yield _step("restart while paused", "POST", "/connectors/src/restart?includeTasks=true")
    yield _step("resume", "PUT", "/connectors/src/resume", of="src", until=("PAUSED", "PAUSED"))
    yield _step("resumed", "GET", "/connectors/src/status", of="src", until=("RUNNING", "RUNNING"))
    yield _step("topics", "GET", "/connectors/src/topics")
    record = {"topic": {"name": "rest-lines", "connector": "src", "task": 0, "discoverTimestamp": 1}}
    text = json.dumps(["status-topic-rest-lines:connector-src", json.dumps(record)])
    yield _step("a topic is used", "WRITE", f"{GROUP}-status", text)
    yield _step("pause after that", "PUT", "/connectors/src/pause")
    yield _step("topics now", "GET", "/connectors/src/topics", of="src", until=("PAUSED", "PAUSED"))
    yield _step("topics reset", "PUT", "/connectors/src/topics/reset")
    yield _step("topics reset again", "PUT", "/connectors/src/topics/reset")
    yield _step("resume after that", "PUT", "/connectors/src/resume")
    yield _step("topics then", "GET", "/connectors/src/topics", of="src", until=("RUNNING", "RUNNING"))
    for state in ("paused", "Stopped", "running", None):
        name = f"born-{state}"
        body = {"name": name, "config": {**SOURCE, "file": f"/nowhere/{state}"}, "initial_state": state}
        yield _step(f"create {state}", "POST", "/connectors", body)
    yield _step("born paused", "GET", "/connectors/born-paused/status", of="born-paused", until=("PAUSED", "..."))
    yield _step("born stopped", "GET", "/connectors/born-Stopped/status", of="born-Stopped", until=("STOPPED",))
    yield _step("born stopped: tasks", "GET", "/connectors/born-Stopped/tasks")
    yield _step("born stopped: restart", "POST", "/connectors/born-Stopped/restart")
    yield _step("born stopped: restart with tasks", "POST", "/connectors/born-Stopped/restart?includeTasks=true")
    yield _step(
        "born running", "GET", "/connectors/born-running/status", of="born-running", until=("RUNNING", "RUNNING")
    )
    for state in ("paused", "Stopped", "running", None):
        yield _step(f"delete {state}", "DELETE", f"/connectors/born-{state}")
    for name, path in (
        ("odd/\u00e9 %", "odd%2F%C3%A9%20%25"),
        ("sp ace", "sp%20ace"),
        ("plus+", "plus+"),
        ("\U0001f600", "%F0%9F%98%80"),
    ):
        yield _step(
            f"create {path}", "POST", "/connectors", {"name": name, "config": SOURCE, "initial_state": "STOPPED"}
        )
        yield _step(f"read {path}", "GET", f"/connectors/{path}")
        yield _step(f"config of {path}", "GET", f"/connectors/{path}/config")
        yield _step(f"put {path}", "PUT", f"/connectors/{path}/config", {**SOURCE, "name": name})
        yield _step(f"delete {path}", "DELETE", f"/connectors/{path}")
    yield _step("put anew", "PUT", "/connectors/put%20new/config", SOURCE)
    yield _step("delete put", "DELETE", "/connectors/put%20new")
    yield _step("delete put again", "DELETE", "/connectors/put%20new")
    null = {"name": "nulled", "config": {**SOURCE, "a": None}}
    yield _step("create with a null", "POST", "/connectors", null)
    yield _step("read with a null", "GET", "/connectors/nulled/config")
    yield _step("delete with a null", "DELETE", "/connectors/nulled")


def source_offsets() -> Iterator[Step]:
    """Offsets of the source."""
    path = "/connectors/src/offsets"
    part = {"filename": "/nowhere/in"}
    one = {"offsets": [{"partition": part, "offset": {"position": 5}}]}
    yield _step("offsets: none", "GET", path)
    yield _step("offsets: running, alter", "PATCH", path, one)
    yield _step("offsets: running, reset", "DELETE", path)
    yield _step("stop", "PUT", "/connectors/src/stop")
    yield _step("stopped", "GET", "/connectors/src/status", of="src", until=("STOPPED",))
    yield _step("stopped: tasks", "GET", "/connectors/src/tasks")
    yield _step("stop again", "PUT", "/connectors/src/stop")
    for name, body in (
        ("empty", ""),
        ("broken", "{"),
        ("list", "[]"),
        ("null", "null"),
        ("nothing in it", "{}"),
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
        yield _step(f"alter: {name}", "PATCH", path, body)
    yield _step("alter: as text", "PATCH", path, one, kind="text/plain")
    yield _step("alter: still none", "GET", path)
    yield _step("alter", "PATCH", path, one)
    yield _step("altered", "GET", path)
    more = {"filename": "/nowhere/else"}
    two = {
        "offsets": [
            {"partition": part, "offset": {"position": 9}},
            {"partition": more, "offset": {"position": 3, "x": "\u00e9"}},
        ]
    }
    yield _step("alter two", "PATCH", path, two)
    yield _step(
        "alter: numbers in a partition",
        "PATCH",
        path,
        '{"offsets":[{"partition":{"filename":"f","n":1,"d":1.5,"b":true},"offset":{"position":12345678901}}]}',
    )
    yield _step(
        "alter away", "PATCH", path, '{"offsets":[{"partition":{"n":1,"filename":"f","b":true,"d":1.5},"offset":null}]}'
    )
    yield _step("alter away no offset", "PATCH", path, {"offsets": [{"partition": more}]})
    yield _step("altered again", "GET", path)
    yield _step(
        "alter away what is not there", "PATCH", path, '{"offsets":[{"partition":{"filename":"zzz"},"offset":null}]}'
    )
    yield _step("reset", "DELETE", path)
    yield _step("reset: none", "GET", path)
    yield _step("reset again", "DELETE", path)
    yield _step("resume from stop", "PUT", "/connectors/src/resume")
    yield _step("running again", "GET", "/connectors/src/status", of="src", until=("RUNNING", "RUNNING"))


def sink_offsets() -> Iterator[Step]:
    """Offsets of a sink."""
    path = "/connectors/snk/offsets"

    def entry(partition: Any, offset: Any) -> dict[str, Any]:
        return {"offsets": [{"partition": partition, "offset": offset}]}

    lines = {"kafka_topic": "rest-lines", "kafka_partition": 0}
    yield _step(
        "create sink",
        "POST",
        "/connectors",
        {"name": "snk", "config": {**SINK, "tasks.max": 2}, "initial_state": "STOPPED"},
    )
    yield _step("sink stopped", "GET", "/connectors/snk/status", of="snk", until=("STOPPED",))
    yield _step("sink info", "GET", "/connectors/snk")
    yield _step("sink offsets: none", "GET", path)
    yield _step("sink reset: none", "DELETE", path)
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
        yield _step(f"sink alter: {name}", "PATCH", path, body)
    yield _step(
        "sink alter: text",
        "PATCH",
        path,
        entry({"kafka_topic": "rest-lines", "kafka_partition": "1"}, {"kafka_offset": "10"}),
    )
    yield _step("sink alter: number", "PATCH", path, entry(lines, {"kafka_offset": 7}))
    yield _step("sink offsets", "GET", path)
    yield _step("sink alter: away", "PATCH", path, entry({"kafka_topic": "rest-lines", "kafka_partition": 1}, None))
    yield _step("sink offsets left", "GET", path)
    yield _step("a zombie", "JOIN", "connect-snk/rest-lines")
    yield _step("zombie: alter", "PATCH", path, entry(lines, {"kafka_offset": 8}))
    yield _step("zombie: away", "PATCH", path, entry(lines, None))
    yield _step("zombie: reset", "DELETE", path)
    yield _step("no zombie", "LEAVE", "connect-snk/rest-lines")
    yield _step("sink reset", "DELETE", path)
    yield _step("sink reset: gone", "GET", path)
    yield _step("sink running", "PUT", "/connectors/snk/resume")
    yield _step("sink status", "GET", "/connectors/snk/status", of="snk", until=("RUNNING", "RUNNING", "RUNNING"))
    yield _step("sink running: alter", "PATCH", path, entry(lines, {"kafka_offset": 7}))
    yield _step("sink running: reset", "DELETE", path)
    yield _step("sink paused", "PUT", "/connectors/snk/pause")
    yield _step(
        "sink paused: alter",
        "PATCH",
        path,
        entry(lines, {"kafka_offset": 7}),
        of="snk",
        until=("PAUSED", "PAUSED", "PAUSED"),
    )
    yield _step("sink paused: reset", "DELETE", path)
    yield _step("delete sink", "DELETE", "/connectors/snk")


def inside() -> Iterator[Step]:
    """What workers ask of each other, from one who is none."""
    good, algorithm = "X-Connect-Authorization", "X-Connect-Request-Signature-Algorithm"
    for rest, method in (("tasks", "POST"), ("fence", "PUT")):
        path, body = f"/connectors/src/{rest}", "[]" if rest == "tasks" else ""
        yield _step(f"{rest}: unsigned", method, path, body)
        yield _step(f"{rest}: no algorithm", method, path, body, more={good: "AAAA"})
        yield _step(f"{rest}: no signature", method, path, body, more={algorithm: "HmacSHA256"})
        yield _step(f"{rest}: algorithm unknown", method, path, body, more={good: "AAAA", algorithm: "Rot13"})
        yield _step(f"{rest}: algorithm not allowed", method, path, body, more={good: "AAAA", algorithm: "HmacMD5"})
        yield _step(f"{rest}: wrong", method, path, body, more={good: "AAAA", algorithm: "HmacSHA256"})
        yield _step(f"{rest}: no base64", method, path, body, more={good: "=!", algorithm: "HmacSHA256"})
        yield _step(
            f"{rest}: unknown connector",
            method,
            f"/connectors/nope/{rest}",
            body,
            more={good: "AAAA", algorithm: "HmacSHA256"},
        )
    yield _step("tasks: no body, unsigned", "POST", "/connectors/src/tasks")
    yield _step("tasks: broken, unsigned", "POST", "/connectors/src/tasks", "{")
    yield _step("tasks: as text, unsigned", "POST", "/connectors/src/tasks", "x", kind="text/plain")


def loggers() -> Iterator[Step]:
    """Levels of logging."""
    x = "/admin/loggers/com.acme.app"
    yield _step("logger root", "GET", "/admin/loggers/root")
    yield _step("logger unknown", "GET", x)
    for name, body in (
        ("empty", ""),
        ("broken", "{"),
        ("null", "null"),
        ("list", "[]"),
        ("nothing in it", "{}"),
        ("null level", '{"level":null}'),
        ("unknown level", '{"level":"LOUD"}'),
        ("level number", '{"level":5}'),
        ("level empty", '{"level":""}'),
        ("level object", '{"level":{}}'),
        ("as text", '"DEBUG"'),
    ):
        yield _step(f"level: {name}", "PUT", x, body)
    for query in ("", "?scope=worker", "?scope=WORKER", "?scope=nonsense", "?scope="):
        yield _step(f"level debug {query}", "PUT", f"{x}{query}", {"level": "debug"})
        yield _step(f"level of it {query}", "GET", x)
    yield _step("level: more in it", "PUT", x, {"level": "INFO", "x": 1})
    for level in ("TRACE", "WARN", "ERROR", "FATAL", "OFF", "ALL", "Info", "warning"):
        yield _step(f"level {level}", "PUT", x, {"level": level})
    yield _step("level of a child", "GET", x + ".child")
    yield _step("child", "PUT", x + ".child", {"level": "WARN"})
    yield _step("parent again", "PUT", x, {"level": "ERROR"})
    yield _step("child follows", "GET", x + ".child")
    yield _step("level, cluster", "PUT", x + "?scope=cluster", {"level": "DEBUG"})
    yield _step("level, Cluster", "PUT", x + "?scope=Cluster", {"level": "TRACE"})
    yield _step("level, cluster, bad", "PUT", x + "?scope=cluster", {"level": "LOUD"})
    yield _step("level, cluster, none", "PUT", x + "?scope=cluster", {})
    yield _step("level: odd name", "PUT", "/admin/loggers/a%20b", {"level": "INFO"})
    yield _step("level: slash in a name", "PUT", "/admin/loggers/a/b", {"level": "INFO"})
    yield _step("level: as text/plain", "PUT", x, {"level": "INFO"}, kind="text/plain")


def ends() -> Iterator[Step]:
    """The source is deleted."""
    yield _step("delete", "DELETE", "/connectors/src")
    yield _step("deleted", "GET", "/connectors/src")
    yield _step("list at the end", "GET", "/connectors")


def without_topics() -> Iterator[Step]:
    """A worker that does not track topics; and offsets of a mirror, of one that looks at nothing, of one without file."""
    yield _step("tracking off: topics", "GET", "/connectors/nope/topics")
    yield _step("tracking off: reset", "PUT", "/connectors/nope/topics/reset")
    mirror = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "{broker}",
        "target.cluster.bootstrap.servers": "{broker}",
        "topics": "no-such-topic",
    }
    yield _step("create mirror", "POST", "/connectors", {"name": "mm", "config": mirror, "initial_state": "STOPPED"})
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
        yield _step(f"mirror alter: {name}", "PATCH", "/connectors/mm/offsets", body)
    yield _step("mirror offsets", "GET", "/connectors/mm/offsets")
    yield _step("mirror reset", "DELETE", "/connectors/mm/offsets")
    yield _step("mirror reset: gone", "GET", "/connectors/mm/offsets")
    yield _step("delete mirror", "DELETE", "/connectors/mm")
    config = {"connector.class": "FileStreamSource", "topic": "rest-lines"}
    yield _step("create stdin", "POST", "/connectors", {"name": "in", "config": config, "initial_state": "STOPPED"})
    one = {"offsets": [{"partition": {"filename": "f"}, "offset": {"position": 1}}]}
    yield _step("stdin alter", "PATCH", "/connectors/in/offsets", one)
    yield _step("stdin reset", "DELETE", "/connectors/in/offsets")
    yield _step("delete stdin", "DELETE", "/connectors/in")


def without_reset() -> Iterator[Step]:
    """A worker whose tracked topics cannot be reset, and that has no exactly-once support."""
    yield _step("reset off: topics", "GET", "/connectors/nope/topics")
    yield _step("reset off: reset", "PUT", "/connectors/nope/topics/reset")
    yield _step("not exactly once: fence", "PUT", "/connectors/nope/fence", "")
    yield _step(
        "not exactly once: required", "PUT", "/connectors/nope/config", {**SOURCE, "exactly.once.support": "required"}
    )


MAIN = (
    *paths(),
    *unknown(),
    *bad_creates(),
    *lives(),
    *source_offsets(),
    *sink_offsets(),
    *inside(),
    *loggers(),
    *ends(),
)
SECTIONS: Mapping[str, tuple[Mapping[str, str], Sequence[Step]]] = {
    "main": ({"exactly.once.source.support": "enabled"}, MAIN),
    "tracking off": ({"topic.tracking.enable": "false"}, tuple(without_topics())),
    "reset off": (
        {"topic.tracking.allow.reset": "false", "exactly.once.source.support": "disabled"},
        tuple(without_reset()),
    ),
}
