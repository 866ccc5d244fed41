"""`POST /v0/inspect/topics/{name}`: the newest records of a topic, as JSON."""

from __future__ import annotations

from typing import Any

import orjson
from google.protobuf.duration_pb2 import Duration
from starlette.responses import Response

from keelman.api.connect.v1 import topic_service_pb2 as pb
from keelman.api.connect.v1.topic_pb2 import PeekedRecord
from keelman.gateway.ohara.routes import Endpoint
from keelman.gateway.ohara.state import lookups
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.topics.rows import NoRow, row_json
from keelman.gateway.ohara.topics.state import runs
from keelman.gateway.ohara.wire.call import OharaCall, ok
from keelman.gateway.ohara.wire.errors import OharaError, bad_value
from keelman.gateway.ohara.wire.keys import checked_key, key_of
from keelman.gateway.ohara.wire.wording import checked_running

DEFAULT_LIMIT, MAX_LIMIT = 5, 1000
DEFAULT_MS, MIN_MS, MAX_MS = 3000, 1000, 9000
SOURCE_CLASS, SOURCE_KEY = "SOURCE_CLASS", "SOURCE_KEY"
"""Headers that Ohara's sources write."""


class Peek:
    """Shows records."""

    def __init__(self, control: OharaControl) -> None:
        self._control = control

    @property
    def endpoints(self) -> list[Endpoint]:
        """The endpoints for the newest records."""
        return [Endpoint("POST", f"inspect/{word}/{{name}}", self.records) for word in ("topics", "topic")]

    async def records(self, call: OharaCall) -> Response:
        """Answers the newest records, the newest first."""
        key = checked_key(call.group, call.variables["name"])
        limit, timeout = _number(call, "limit", DEFAULT_LIMIT), _number(call, "timeout", DEFAULT_MS)
        if limit <= 0:
            raise bad_value(f"the limit must be bigger than zero. actual:{limit}")
        topic = checked_running("topic", key, await lookups.topic(self._control, key), runs)
        wait = Duration()
        wait.FromMilliseconds(min(max(timeout, MIN_MS), MAX_MS))
        request = pb.PeekTopicRequest(name=topic.name, limit=min(limit, MAX_LIMIT), timeout=wait)
        answer = await self._control.ask(request)
        return ok({"messages": [message(record) for record in answer.records]})


def message(record: PeekedRecord) -> dict[str, Any]:
    """Returns a record in Ohara's form: from Ohara's own connectors the row in the key, from others the value."""
    shown: dict[str, Any] = {"partition": record.partition, "offset": record.offset}
    if record.HasField("timestamp_ms"):
        shown["timestamp"] = record.timestamp_ms  # as Ohara 0.12 shows it
    headers = {header.key: header.value for header in record.headers if header.HasField("value")}
    errors = []
    try:
        shown["value"] = without_empty(_value(record))
    except (NoRow, ValueError) as error:
        errors.append(str(error))
    try:
        if SOURCE_CLASS in headers:
            shown["sourceClass"] = headers[SOURCE_CLASS].decode()
        if SOURCE_KEY in headers:
            shown["sourceKey"] = key_of(orjson.loads(headers[SOURCE_KEY]), SOURCE_KEY).json
    except (ValueError, OharaError) as error:
        errors.append(f"a header of Ohara's cannot be read: {error}")
    if errors:
        shown["error"] = "; ".join(errors)
    return {name: value for name, value in shown.items() if value not in (None, "")}


def without_empty(value: Any) -> Any:
    """Returns JSON without empty strings and nulls, which Ohara's clients cannot read."""
    if isinstance(value, dict):
        return {k: inner for k, item in value.items() if k and (inner := without_empty(item)) not in (None, "")}
    if isinstance(value, list):
        return [inner for item in value if (inner := without_empty(item)) not in (None, "")]
    return value


def _value(record: PeekedRecord) -> Any:
    """Returns the row or value of a record. Raises NoRow or ValueError if it is neither a row, nor JSON, nor text."""
    row = record.key if record.HasField("key") else b""
    if row[:1] == b"\0":
        try:
            return row_json(row)
        except NoRow:
            if not record.HasField("value"):
                raise
    if not record.HasField("value"):
        return None
    try:
        text = record.value.decode()
    except UnicodeDecodeError:
        raise ValueError(f"the value is binary, {len(record.value)} bytes") from None
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(tree, dict) and tree.keys() == {"schema", "payload"}:  # as Connect's JsonConverter writes
        return tree["payload"]
    return tree


def _number(call: OharaCall, name: str, default: int) -> int:
    text = call.parameter(name)
    if not text:
        return default
    if not (text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal() and len(text) <= 18):
        raise bad_value(f"The query parameter '{name}' was malformed: '{text[:40]}' is not a valid number")
    return int(text)
