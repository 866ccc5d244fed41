"""A source from its creation on."""

from __future__ import annotations

import json
from collections.abc import Iterator

from recorded.rest.rest_step import EMPTY_BODIES, GROUP, SOURCE, step
from support.worker.rest import Step


def lives() -> Iterator[Step]:
    """A source from its creation on."""
    values = '"flag":true,"pi":1.50,"big":12345678901234567890,"exp":1e3,"neg":-0,"no":false,"twice":"a","twice":"b",'
    config = '{"batch.size":7,' + values
    config += '"connector.class":"FileStreamSource","file":"/nowhere/in","topic":"rest-lines"}'
    yield step("create", "POST", "/connectors", '{"name":" src ","config":' + config + "}")
    yield step("running", "GET", "/connectors/src/status", of="src", until=("RUNNING", "RUNNING"))
    yield step("info", "GET", "/connectors/src")
    yield step("config", "GET", "/connectors/src/config")
    yield step("tasks", "GET", "/connectors/src/tasks")
    yield step("task status", "GET", "/connectors/src/tasks/0/status")
    for task in ("1", "-1", "abc", "99999999999", "0x0", "%30", "00", "+0", "1.0"):
        path = f"/connectors/src/tasks/{task}"
        yield step(f"task {task} status", "GET", f"{path}/status", of="src", until=("RUNNING", "RUNNING"))
        if task not in ("%30", "00", "+0"):  # these are task 0, which restarts then: the next steps would meet it
            yield step(f"task {task} restart", "POST", f"{path}/restart")
    yield step("create again", "POST", "/connectors", {"name": "src", "config": SOURCE})
    yield step("create again, invalid", "POST", "/connectors", {"name": "src", "config": {"a": "b"}})
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
        yield step(f"list {query}", "GET", f"/connectors{query}")
    yield step("update", "PUT", "/connectors/src/config", {**SOURCE, "batch.size": 7})
    yield step("updated", "GET", "/connectors/src", of="src", until=("RUNNING", "RUNNING"))
    yield step("update as it is", "PUT", "/connectors/src/config", {**SOURCE, "batch.size": 7})
    yield step("update: other name", "PUT", "/connectors/src/config", {**SOURCE, "name": "dst"})
    yield step("update: name with blanks", "PUT", "/connectors/src/config", {**SOURCE, "name": " src "})
    for name, body in (
        *EMPTY_BODIES,
        ("value object", '{"a":{}}'),
        ("value null", '{"connector.class":"FileStreamSource","topic":"t","a":null}'),
        ("no class", '{"a":"b"}'),
        ("invalid", {**SOURCE, "tasks.max": "many"}),
        ("text", '"a"'),
    ):
        yield step(f"update: {name}", "PUT", "/connectors/src/config", body)
    yield step("update: as text", "PUT", "/connectors/src/config", SOURCE, kind="text/plain")
    yield step("update: unknown and invalid", "PUT", "/connectors/nope/config", {"a": "b"})
    yield step("after the bad updates", "GET", "/connectors/src/config")
    yield step("patch", "PATCH", "/connectors/src/config", '{"batch.size":null,"a":1,"b":true}')
    yield step("patch: nothing", "PATCH", "/connectors/src/config", "{}")
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
        yield step(f"patch: {name}", "PATCH", "/connectors/src/config", body)
    yield step("patch: as text", "PATCH", "/connectors/src/config", "{}", kind="text/plain")
    yield step("patched", "GET", "/connectors/src/config", of="src", until=("RUNNING", "RUNNING"))
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
        yield step(
            f"restart {query}", "POST", f"/connectors/src/restart{query}", of="src", until=("RUNNING", "RUNNING")
        )
    yield step("restart with a body", "POST", "/connectors/src/restart", "{", of="src", until=("RUNNING", "RUNNING"))
    yield step("task restart", "POST", "/connectors/src/tasks/0/restart", of="src", until=("RUNNING", "RUNNING"))
    yield step("pause", "PUT", "/connectors/src/pause", of="src", until=("RUNNING", "RUNNING"))
    yield step("paused", "GET", "/connectors/src/status", of="src", until=("PAUSED", "PAUSED"))
    yield step("pause again", "PUT", "/connectors/src/pause")
    yield step("pause with a body", "PUT", "/connectors/src/pause", "x", kind="text/plain")
    yield step("restart while paused", "POST", "/connectors/src/restart?includeTasks=true")
    yield step("resume", "PUT", "/connectors/src/resume", of="src", until=("PAUSED", "PAUSED"))
    yield step("resumed", "GET", "/connectors/src/status", of="src", until=("RUNNING", "RUNNING"))
    yield step("topics", "GET", "/connectors/src/topics")
    record = {"topic": {"name": "rest-lines", "connector": "src", "task": 0, "discoverTimestamp": 1}}
    text = json.dumps(["status-topic-rest-lines:connector-src", json.dumps(record)])
    yield step("a topic is used", "WRITE", f"{GROUP}-status", text)
    yield step("pause after that", "PUT", "/connectors/src/pause")
    yield step("topics now", "GET", "/connectors/src/topics", of="src", until=("PAUSED", "PAUSED"))
    yield step("topics reset", "PUT", "/connectors/src/topics/reset")
    yield step("topics reset again", "PUT", "/connectors/src/topics/reset")
    yield step("resume after that", "PUT", "/connectors/src/resume")
    yield step("topics then", "GET", "/connectors/src/topics", of="src", until=("RUNNING", "RUNNING"))
    for state in ("paused", "Stopped", "running", None):
        name = f"born-{state}"
        body = {"name": name, "config": {**SOURCE, "file": f"/nowhere/{state}"}, "initial_state": state}
        yield step(f"create {state}", "POST", "/connectors", body)
    yield step("born paused", "GET", "/connectors/born-paused/status", of="born-paused", until=("PAUSED", "..."))
    yield step("born stopped", "GET", "/connectors/born-Stopped/status", of="born-Stopped", until=("STOPPED",))
    yield step("born stopped: tasks", "GET", "/connectors/born-Stopped/tasks")
    yield step("born stopped: restart", "POST", "/connectors/born-Stopped/restart")
    yield step("born stopped: restart with tasks", "POST", "/connectors/born-Stopped/restart?includeTasks=true")
    yield step(
        "born running", "GET", "/connectors/born-running/status", of="born-running", until=("RUNNING", "RUNNING")
    )
    for state in ("paused", "Stopped", "running", None):
        yield step(f"delete {state}", "DELETE", f"/connectors/born-{state}")
    for name, path in (
        ("odd/\u00e9 %", "odd%2F%C3%A9%20%25"),
        ("sp ace", "sp%20ace"),
        ("plus+", "plus+"),
        ("\U0001f600", "%F0%9F%98%80"),
    ):
        yield step(
            f"create {path}", "POST", "/connectors", {"name": name, "config": SOURCE, "initial_state": "STOPPED"}
        )
        yield step(f"read {path}", "GET", f"/connectors/{path}")
        yield step(f"config of {path}", "GET", f"/connectors/{path}/config")
        yield step(f"put {path}", "PUT", f"/connectors/{path}/config", {**SOURCE, "name": name})
        yield step(f"delete {path}", "DELETE", f"/connectors/{path}")
    yield step("put anew", "PUT", "/connectors/put%20new/config", SOURCE)
    yield step("delete put", "DELETE", "/connectors/put%20new")
    yield step("delete put again", "DELETE", "/connectors/put%20new")
    null = {"name": "nulled", "config": {**SOURCE, "a": None}}
    yield step("create with a null", "POST", "/connectors", null)
    yield step("read with a null", "GET", "/connectors/nulled/config")
    yield step("delete with a null", "DELETE", "/connectors/nulled")


def ends() -> Iterator[Step]:
    """The source is deleted."""
    yield step("delete", "DELETE", "/connectors/src")
    yield step("deleted", "GET", "/connectors/src")
    yield step("list at the end", "GET", "/connectors")
