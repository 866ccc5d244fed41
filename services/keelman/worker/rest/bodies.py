"""Reads the JSON bodies of REST requests as leniently as Connect reads them, and refuses them in its words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.requests import Request

from keelman.connect.config.types import trim
from keelman.worker.errors import RestError
from keelman.worker.offsets.entries import OffsetEntry

JSON_TYPE = "application/json"
ENTITIES = "org.apache.kafka.connect.runtime.rest.entities"
TEXT_MAP = "java.util.LinkedHashMap<java.lang.String,java.lang.String>"
ANY_MAP = "java.util.LinkedHashMap<java.lang.String,java.lang.Object>"
TEXT = "java.lang.String"
MAX_DIGITS = 1000
STATES = ("RUNNING", "PAUSED", "STOPPED")


class WrittenNumber(str):
    """A number as it was written: its text stays unchanged."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NewConnector:
    """The body of POST /connectors."""

    name: str
    config: dict[str, str | None] | None
    initial_state: str | None


async def json_body(request: Request) -> Any:
    """Returns the JSON value of a request, numbers as `WrittenNumber`; None for no body. Raises as `parsed`."""
    return parsed(await request.body())


def parsed(raw: bytes, what: str = "The request's body") -> Any:
    """Returns the JSON value of a body, in any UTF, numbers as `WrittenNumber`; None for an empty one. Raises 500 with
    `what`, 400 for half a character, which Kafka cannot keep.

    Also called for the files of connectors that a standalone worker begins with.
    """
    try:
        text = raw.decode(json.detect_encoding(raw)).strip(" \t\r\n")
    except UnicodeDecodeError as error:
        raise RestError(500, f"{what} is not JSON: it is not UTF-8 at byte {error.start}") from None
    if not text:
        return None
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:  # such an escape may stand for no character
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise RestError(400, f"{what} has half of a surrogate pair in it, {half}, which is no character") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RestError(500, f"{what} is not JSON: {error.msg} at {where}") from None
    except ValueError as error:
        raise RestError(500, f"{what} is not JSON: {error}") from None
    except RecursionError:
        raise RestError(500, f"{what} is not legal JSON: it is nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_int=WrittenNumber, parse_float=WrittenNumber, parse_constant=_no_constant)


def new_connector(value: Any) -> NewConnector:
    """Returns the description of a new connector. Raises 500."""
    fields = _entity(value, "CreateConnectorRequest", ("config", "name", "initial_state"))
    state = fields.get("initial_state")
    if state is not None:
        kind = f"{ENTITIES}.CreateConnectorRequest$InitialState"
        state = _scalar(state, kind)
        if state.upper() not in STATES:
            raise RestError(
                500,
                f"Cannot construct instance of `{kind}`, problem: No enum constant "
                f"{kind.replace('$', '.')}.{state.upper()}",
            )
    name = fields.get("name")
    config = fields.get("config")
    return NewConnector(
        "" if name is None else trim(_scalar(name, TEXT)),
        None if config is None else text_map(config),
        None if state is None else state.upper(),
    )


def text_map(value: Any) -> dict[str, str | None]:
    """Returns a flat map: numbers and booleans become their text. Raises 500 for other values, and for a deeper map."""
    if not isinstance(value, dict):
        _mismatch(value, TEXT_MAP)
    return {key: None if value is None else _scalar(value, TEXT) for key, value in value.items()}


def text_maps(raw: bytes) -> list[dict[str, str]]:
    """Returns a list of flat maps, of a body of any type. Raises 500."""
    value = parsed(raw)
    if value is None:
        raise RestError(500, "No content to map due to end-of-input")
    if not isinstance(value, list):
        _mismatch(value, "java.util.ArrayList<java.util.Map<java.lang.String,java.lang.String>>")
    return [{key: text or "" for key, text in text_map(item).items()} for item in value]


def wanted_map(value: Any, what: str) -> dict[str, str | None]:
    """As `text_map` where there must be one. Raises 500 naming `what` for null and for an empty body."""
    if value is None:
        raise RestError(500, f"{what} is missing in the request: send a JSON object")
    return text_map(value)


def offset_entries(value: Any) -> list[OffsetEntry]:
    """Returns the entries of an offsets request; none for an empty one. Raises 500, 400."""
    missing = RestError(400, "Partitions / offsets need to be provided for an alter offsets request")
    fields = _entity(value, "ConnectorOffsets", ("offsets",))
    offsets = fields.get("offsets")
    if offsets is not None and not isinstance(offsets, list):
        _mismatch(offsets, f"java.util.ArrayList<{ENTITIES}.ConnectorOffset>")
    if not offsets:
        raise missing
    entries = []
    for item in offsets:
        if item is None:
            raise RestError(500, "offsets: an entry is null: send a partition and an offset")
        entry = _entity(item, "ConnectorOffset", ("partition", "offset"))
        entries.append(OffsetEntry(_any_map(entry.get("partition")), _any_map(entry.get("offset"))))
    return entries


def _any_map(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        _mismatch(value, ANY_MAP)
    return {key: plain(value) for key, value in value.items()}


def plain(value: Any) -> Any:
    """Returns a value with its numbers as numbers. Raises 500 for a number of more digits than Connect takes."""
    if isinstance(value, WrittenNumber):
        if len(value) > MAX_DIGITS:
            raise RestError(500, f"Number value length ({len(value)}) exceeds the maximum allowed ({MAX_DIGITS})")
        return float(value) if any(mark in value for mark in ".eE") else int(value)
    if isinstance(value, dict):
        return {key: plain(value) for key, value in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _entity(value: Any, name: str, legal: Sequence[str]) -> Mapping[str, Any]:
    kind = f"{ENTITIES}.{name}"
    if value is None:
        raise RestError(500, "The request has no body")
    if not isinstance(value, dict):
        _mismatch(value, kind)
    for field in value:
        if field not in legal:
            shown = ", ".join(f'"{text}"' for text in legal)
            counted = f"{len(legal)} known properties" if len(legal) > 1 else "one known property"
            raise RestError(
                500, f'Unrecognized field "{field}" (class {kind}), not marked as ignorable ({counted}: {shown})'
            )
    return value


def _scalar(value: Any, kind: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        _mismatch(value, kind)
    return str(value)


def _mismatch(value: Any, kind: str) -> NoReturn:
    """Raises 500 in the words of Connect's JSON library, without the place in the text."""
    listed = kind.startswith("java.util.ArrayList")
    is_text = isinstance(value, str) and not isinstance(value, WrittenNumber)
    if (is_text and not listed) or (isinstance(value, WrittenNumber) and kind.startswith(ENTITIES)):
        maker, from_a, shown = ("String", "String", f"'{value}'") if is_text else ("int/Int", "Number", value)
        raise RestError(
            500,
            f"Cannot construct instance of `{kind.partition('<')[0]}` (although at least one Creator exists): "
            f"no {maker}-argument constructor/factory method to deserialize from {from_a} value ({shown})",
        )
    raise RestError(500, f"Cannot deserialize value of type `{kind}` from {_described(value)}")


def _described(value: Any) -> str:
    if isinstance(value, WrittenNumber):
        whole = value.lstrip("-").isdigit()
        name, token = ("Integer", "VALUE_NUMBER_INT") if whole else ("Floating-point", "VALUE_NUMBER_FLOAT")
    elif isinstance(value, bool):
        name, token = "Boolean", "VALUE_TRUE" if value else "VALUE_FALSE"
    elif isinstance(value, str):
        name, token = "String", "VALUE_STRING"
    elif value is None:
        name, token = "Null", "VALUE_NULL"
    else:
        name, token = ("Object", "START_OBJECT") if isinstance(value, dict) else ("Array", "START_ARRAY")
    return f"{name} value (token `JsonToken.{token}`)"
