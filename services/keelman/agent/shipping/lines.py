"""Puts log lines into the form in which they are delivered: [Worker-<17 hex>] [time] LEVEL message (origin). Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import orjson

MAX_LINE_BYTES = 256 * 1024
"""A longer line is delivered as several."""
# The format of structlog's console: time, level, event, the logger of a library, fields. See runtime.logs.logging.
_CONSOLE = re.compile(rb"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?Z? \[(\w+) *\] (.*)", re.DOTALL)
_LOGGER = re.compile(rb" +\[([A-Za-z_][\w.]*)\](?= |$)")
_FIELD = re.compile(rb" (service|origin)=(\S+)")
_OWN_FIELDS = ("timestamp", "level", "event", "logger", "service", "origin")
# Kafka Connect's own lines have this form already.
_JAVA = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ ")


def worker_id(seed: str) -> str:
    """Returns the 17 hex digits by which a stream's lines are known."""
    return hashlib.sha256(seed.encode()).hexdigest()[:17]


class ClusterLines:
    """Picks the lines about one worker cluster out of the log of a node's Spark service; a trace belongs to the line
    before it. `mine`: whether the line before the next ones was."""

    def __init__(self, worker_cluster: str) -> None:
        self._field = re.compile(rb" worker_cluster=" + re.escape(worker_cluster.encode()) + rb"(?: |$)")
        self._name = worker_cluster

    def is_mine(self, line: bytes, mine: bool) -> bool:
        """Returns whether a line is about the cluster; `mine` is that of the line before."""
        if line.startswith(b"{"):
            fields = _json(line)
            return mine if fields is None else fields.get("worker_cluster") == self._name
        return bool(self._field.search(line)) if _CONSOLE.match(line) else mine


def formed(line: bytes, worker: str) -> Iterator[bytes]:
    """Returns a line without its end as it is delivered: one line, or several where it is very long."""
    prefix = b"[Worker-" + worker.encode() + b"] "
    text = _formed(line)
    for begin in range(0, len(text), MAX_LINE_BYTES):
        yield prefix + text[begin : begin + MAX_LINE_BYTES]
    if not text:
        yield prefix.rstrip()


def _formed(line: bytes) -> bytes:
    if _JAVA.match(line):
        return line
    if line.startswith(b"{") and (event := _json(line)) is not None and "event" in event:
        return _of_json(event)
    match = _CONSOLE.match(line)
    if match is None:
        return line
    day, time, fraction, level, rest = match.groups()
    origin = b""
    if logger := _LOGGER.search(rest):
        origin = logger[1]
        rest = rest[: logger.start()] + rest[logger.end() :]
    fields = dict(_FIELD.findall(b" " + rest))
    origin = fields.get(b"origin") or origin or b"keelman." + fields.get(b"service", b"worker")
    message = _FIELD.sub(b"", b" " + rest).strip()
    message = re.sub(rb"^(\S+) +", rb"\1 ", message)  # the event is padded
    return _joined(b"%s %s,%s" % (day, time, ((fraction or b"") + b"000")[:3]), level, message, origin)


def _of_json(event: dict[str, Any]) -> bytes:
    day, _, time = str(event.get("timestamp", "")).rstrip("Z").partition("T")
    time, _, fraction = time.partition(".")
    origin = event.get("origin") or event.get("logger") or f"keelman.{event.get('service', 'worker')}"
    fields = [f"{name}={value}" for name, value in event.items() if name not in _OWN_FIELDS]
    message = " ".join([str(event["event"]), *fields]).replace("\n", "\\n")
    parts = (f"{day} {time},{(fraction + '000')[:3]}", str(event.get("level", "info")), message, str(origin))
    return _joined(*(part.encode() for part in parts))


def _joined(time: bytes, level: bytes, message: bytes, origin: bytes) -> bytes:
    return b"[%s] %s %s (%s)" % (time, _level(level), message, origin)


def _level(level: bytes) -> bytes:
    upper = level.upper()
    return {b"WARNING": b"WARN", b"CRITICAL": b"FATAL", b"EXCEPTION": b"ERROR"}.get(upper, upper)


def _json(line: bytes) -> dict[str, Any] | None:
    try:
        tree = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return tree if isinstance(tree, dict) else None
