"""Paths, methods, missing connectors, and bodies with which no connector may be created."""

from __future__ import annotations

from collections.abc import Iterator

from recorded.rest.rest_step import SOURCE, step
from support.worker.rest import Step


def paths() -> Iterator[Step]:
    """Paths and methods."""
    yield step("root", "GET", "/")
    yield step("health", "GET", "/health")
    yield step("no connectors", "GET", "/connectors")
    yield step("no connectors, expanded", "GET", "/connectors?expand=status&expand=info")
    yield step("unknown path", "GET", "/nothing")
    yield step("unknown path below a connector", "GET", "/connectors/nope/nothing")
    yield step("removed path", "GET", "/connectors/nope/tasks-config")
    yield step("path in capitals", "GET", "/CONNECTORS")
    yield step("slash at the end", "GET", "/connectors/")
    yield step("two slashes", "GET", "//connectors")
    yield step("dots in a path", "GET", "/connectors/../connectors")
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
        yield step(f"{method} on {path}", method, path)
    for path in ("/", "/connectors", "/connectors/nope", "/connectors/nope/config"):
        yield step(f"HEAD {path}", "HEAD", path)
        yield step(f"OPTIONS {path}", "OPTIONS", path)
    yield step("answer as text wanted", "GET", "/connectors", "", more={"Accept": "text/plain"})
    yield step("answer as anything wanted", "GET", "/connectors", "", more={"Accept": "text/html, */*;q=0.1"})


def unknown() -> Iterator[Step]:
    """Requests about a connector that does not exist."""
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
        yield step(f"unknown: {method} {rest}", method, x + rest)
    yield step("unknown: PATCH /config", "PATCH", x + "/config", {"a": "b"})
    entry = {"offsets": [{"partition": {"filename": "/nowhere/in"}, "offset": {"position": 1}}]}
    yield step("unknown: PATCH /offsets", "PATCH", x + "/offsets", entry)
    yield step("unknown: PATCH /offsets, empty", "PATCH", x + "/offsets", {"offsets": []})
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
        yield step(f"unknown: name {name[:20]}", "GET", f"/connectors/{name}")
        yield step(f"unknown: status of {name[:20]}", "GET", f"/connectors/{name}/status")


def bad_creates() -> Iterator[Step]:
    """POST /connectors with bodies with which no connector may be created."""
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
        yield step(f"create: {name}", "POST", "/connectors", body)
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
        yield step(f"create: as {kind}", "POST", "/connectors", good, kind=kind)
    yield step("create: as nothing", "POST", "/connectors", good, kind=None)
    yield step("create: answer as text wanted", "POST", "/connectors", good, more={"Accept": "text/plain"})
    yield step("create: empty as nothing", "POST", "/connectors", kind=None)
    yield step("still no connectors", "GET", "/connectors")
