"""The notation of a recorded request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.worker.rest import Step

SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "rest-lines"}
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "topics": "rest-lines"}
GROUP = "rest-recorded"
# Names and texts for bodies without usable content.
EMPTY_BODIES = (("empty", ""), ("broken", "{"), ("list", "[]"), ("null", "null"), ("nothing in it", "{}"))


def step(
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
    """A body that is text or bytes is sent unchanged, any other as JSON."""
    raw = body if body is None or isinstance(body, str | bytes) else json.dumps(body, ensure_ascii=False)
    headers = {} if kind is None else {"Content-Type": kind}
    return Step(name, method, path, raw, {**headers, **(more or {})}, of, until)
