"""Requests of workers to each other, log levels, and endpoints that a worker may have disabled."""

from __future__ import annotations

from collections.abc import Iterator

from recorded.rest.rest_step import SOURCE, step
from support.worker.rest import Step


def inside() -> Iterator[Step]:
    """Requests of workers to each other, sent by a client that is not a worker."""
    good, algorithm = "X-Connect-Authorization", "X-Connect-Request-Signature-Algorithm"
    for rest, method in (("tasks", "POST"), ("fence", "PUT")):
        path, body = f"/connectors/src/{rest}", "[]" if rest == "tasks" else ""
        yield step(f"{rest}: unsigned", method, path, body)
        yield step(f"{rest}: no algorithm", method, path, body, more={good: "AAAA"})
        yield step(f"{rest}: no signature", method, path, body, more={algorithm: "HmacSHA256"})
        yield step(f"{rest}: algorithm unknown", method, path, body, more={good: "AAAA", algorithm: "Rot13"})
        yield step(f"{rest}: algorithm not allowed", method, path, body, more={good: "AAAA", algorithm: "HmacMD5"})
        yield step(f"{rest}: wrong", method, path, body, more={good: "AAAA", algorithm: "HmacSHA256"})
        yield step(f"{rest}: no base64", method, path, body, more={good: "=!", algorithm: "HmacSHA256"})
        yield step(
            f"{rest}: unknown connector",
            method,
            f"/connectors/nope/{rest}",
            body,
            more={good: "AAAA", algorithm: "HmacSHA256"},
        )
    yield step("tasks: no body, unsigned", "POST", "/connectors/src/tasks")
    yield step("tasks: broken, unsigned", "POST", "/connectors/src/tasks", "{")
    yield step("tasks: as text, unsigned", "POST", "/connectors/src/tasks", "x", kind="text/plain")


def loggers() -> Iterator[Step]:
    """Requests about log levels."""
    x = "/admin/loggers/com.acme.app"
    yield step("logger root", "GET", "/admin/loggers/root")
    yield step("logger unknown", "GET", x)
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
        yield step(f"level: {name}", "PUT", x, body)
    for query in ("", "?scope=worker", "?scope=WORKER", "?scope=nonsense", "?scope="):
        yield step(f"level debug {query}", "PUT", f"{x}{query}", {"level": "debug"})
        yield step(f"level of it {query}", "GET", x)
    yield step("level: more in it", "PUT", x, {"level": "INFO", "x": 1})
    for level in ("TRACE", "WARN", "ERROR", "FATAL", "OFF", "ALL", "Info", "warning"):
        yield step(f"level {level}", "PUT", x, {"level": level})
    yield step("level of a child", "GET", x + ".child")
    yield step("child", "PUT", x + ".child", {"level": "WARN"})
    yield step("parent again", "PUT", x, {"level": "ERROR"})
    yield step("child follows", "GET", x + ".child")
    yield step("level, cluster", "PUT", x + "?scope=cluster", {"level": "DEBUG"})
    yield step("level, Cluster", "PUT", x + "?scope=Cluster", {"level": "TRACE"})
    yield step("level, cluster, bad", "PUT", x + "?scope=cluster", {"level": "LOUD"})
    yield step("level, cluster, none", "PUT", x + "?scope=cluster", {})
    yield step("level: odd name", "PUT", "/admin/loggers/a%20b", {"level": "INFO"})
    yield step("level: slash in a name", "PUT", "/admin/loggers/a/b", {"level": "INFO"})
    yield step("level: as text/plain", "PUT", x, {"level": "INFO"}, kind="text/plain")


def without_reset() -> Iterator[Step]:
    """Requests to a worker whose tracked topics cannot be reset, and that has no exactly-once support."""
    yield step("reset off: topics", "GET", "/connectors/nope/topics")
    yield step("reset off: reset", "PUT", "/connectors/nope/topics/reset")
    yield step("not exactly once: fence", "PUT", "/connectors/nope/fence", "")
    yield step(
        "not exactly once: required", "PUT", "/connectors/nope/config", {**SOURCE, "exactly.once.support": "required"}
    )
