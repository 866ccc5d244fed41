"""What becomes of single records on their way through a connector's converters and transforms, step by step. Pure.

Each step's record is JSON for people and programs: `bytes` as it stands in Kafka, with its size and its text or base64;
`typed` as the chain has it, with schemas in one line. What is long is cut, and says so.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keelman.connect.chain import Chain, Step
from keelman.connect.connector_keys import DEAD_LETTERS
from keelman.connect.converters import Converter, converter_for
from keelman.connect.errors import ConnectError
from keelman.connect.json_converter import JsonConverter
from keelman.connect.record import Header, Record
from keelman.connect.records import Column, Headers, SourceBatch
from keelman.connect.schema import OPTIONAL_BYTES, Schema

BEGINNING, COMMITTED, END = "beginning", "committed", "end"
"""Where a preview reads from: a source's data or its committed offsets, a sink's topics from either side."""
LONGEST_TEXT = 4_096
LONGEST_JSON = 16_384
View = dict[str, Any]
_PLAIN = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"})


class _Failed(Exception):
    """A record ends here: stage in Connect's name, the step that it failed in, and the error."""

    def __init__(self, stage: str, step: str, error: ConnectError) -> None:
        super().__init__(str(error))
        self.stage, self.step, self.error = stage, step, error


class Preview:
    """One connector's steps. Used by one thread."""

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str]) -> None:
        """Raises ConfigValueError when a converter or a transform is not legal."""
        self._config = config
        self._keys, self._values = converter_for("key", config, worker), converter_for("value", config, worker)
        self._headers = converter_for("header", config, worker)
        self._chain = Chain(config)
        self._predicates = {
            step.alias: config.get(f"transforms.{step.alias}.predicate", "").strip() for step in self._chain.steps
        }

    def of_source(self, batch: SourceBatch, index: int) -> View:
        """A record that a reader gave, up to what would be written."""
        steps: list[View] = []

        def walk() -> str:
            record = self._read(batch, index)
            steps.append({"step": "read", "record": typed(record)})
            after = self._chained(record, steps)
            if after is None:
                return "dropped"
            steps.append({"step": "written", "record": self._written(after, raw=batch.raw)})
            return "written"

        return self._told(walk, steps)

    def of_sink(self, record: Record, key: bytes | None, value: bytes | None, headers: Headers) -> View:
        """A record of a topic, up to what the connector would be given. `record` has all but key, value, headers."""
        where = {"partition": record.partition, "offset": record.offset, "timestamp_ms": record.timestamp_ms}
        read = {"topic": record.topic, **where, "key": payload(key), "value": payload(value)}
        steps: list[View] = [{"step": "read", "record": {**read, "headers": _raw_headers(headers)}}]

        def walk() -> str:
            with _at("KEY_CONVERTER", "key.converter"):
                record.key_schema, record.key = _opened(self._keys, key)
            with _at("VALUE_CONVERTER", "value.converter"):
                record.value_schema, record.value = _opened(self._values, value)
            record.headers = [self._header(name, raw) for name, raw in headers]
            steps.append({"step": "converted", "record": typed(record)})
            return "dropped" if self._chained(record, steps) is None else "given"

        return self._told(walk, steps)

    def _told(self, walk: Callable[[], str], steps: list[View]) -> View:
        try:
            return {"outcome": walk(), "steps": steps}
        except _Failed as failed:
            error = {
                "stage": failed.stage,
                "step": failed.step,
                "class": failed.error.java_name,
                "message": str(failed.error),
                "then": self._then(),
            }
            return {"outcome": "failed", "steps": steps, "error": error}

    def _then(self) -> str:
        """What `errors.tolerance` makes of a record that fails."""
        if self._config.get("errors.tolerance", "none").strip().lower() != "all":
            return "the task fails (errors.tolerance=none)"
        topic = self._config.get(DEAD_LETTERS, "").strip()
        return f"the record becomes a dead letter in topic {topic}" if topic else "the record is skipped"

    def _read(self, batch: SourceBatch, index: int) -> Record:
        values = Column(batch.values.values, OPTIONAL_BYTES) if batch.raw else batch.values
        keys = batch.keys
        if keys is not None and batch.raw:
            keys = Column(keys.values, OPTIONAL_BYTES)
        key_schema, key = (None, None) if keys is None else _one(keys, index)
        value_schema, value = _one(values, index)
        headers = () if batch.headers is None else batch.headers[index] or ()
        return Record(
            batch.topic,
            None if batch.partitions is None else batch.partitions[index],
            key_schema,
            key,
            value_schema,
            value,
            None if batch.timestamps_ms is None else batch.timestamps_ms[index],
            [self._header(name, raw) for name, raw in headers],
        )

    def _header(self, name: str, raw: bytes | None) -> Header:
        with _at("HEADER_CONVERTER", "header.converter"):
            schema, value = _opened(self._headers, raw)
        return Header(name, schema, value, raw)

    def _chained(self, record: Record, steps: list[View]) -> Record | None:
        found: Record | None = record
        for step in self._chain.steps:
            assert found is not None
            name = f"transforms.{step.alias}"
            told: View = {"step": "transform", "alias": step.alias, "class": self._config.get(f"{name}.type", "")}
            with _at("TRANSFORMATION", name):
                told["applied"] = self._applies(step, found, told)
                if told["applied"]:
                    found = step.transform.apply(found)
            steps.append({**told, "record": None if found is None else typed(found)})
            if found is None:
                return None
        return found

    def _applies(self, step: Step, record: Record, told: View) -> bool:
        if step.predicate is None:
            return True
        holds, alias = step.predicate.test(record), self._predicates[step.alias]
        told["predicate"] = {
            "alias": alias,
            "class": self._config.get(f"predicates.{alias}.type", ""),
            "holds": holds,
            "negate": step.negate,
        }
        return holds != step.negate

    def _written(self, record: Record, *, raw: bool) -> View:
        with _at("KEY_CONVERTER", "key.converter"):
            key = _closed(self._keys, record.key_schema, record.key, raw=raw)
        with _at("VALUE_CONVERTER", "value.converter"):
            value = _closed(self._values, record.value_schema, record.value, raw=raw)
        with _at("HEADER_CONVERTER", "header.converter"):
            headers = [(one.name, self._header_bytes(one)) for one in record.headers]
        return {
            "topic": record.topic,
            "partition": record.partition,
            "timestamp_ms": record.timestamp_ms,
            "key": payload(key),
            "value": payload(value),
            "headers": _raw_headers(headers),
        }

    def _header_bytes(self, header: Header) -> bytes | None:
        if header.raw is not None:
            return header.raw
        return self._headers.from_connect(Column([header.value], header.schema))[0]


@contextmanager
def _at(stage: str, step: str) -> Iterator[None]:
    try:
        yield
    except ConnectError as error:
        raise _Failed(stage, step, error) from error


def _one(column: Column, index: int) -> tuple[Schema | None, Any]:
    single = Column([column.values[index]], column.schema_of(index), utf8=column.utf8).texts()
    return single.schema, single.values[0]


def _opened(converter: Converter, data: bytes | None) -> tuple[Schema | None, Any]:
    return _one(converter.to_connect([data]), 0)


def _closed(converter: Converter, schema: Schema | None, value: Any, *, raw: bool) -> bytes | None:
    """What is bytes already stays so where the reader wants it."""
    if raw and (value is None or isinstance(value, bytes)):
        return value
    return converter.from_connect(Column([value], schema))[0]


def payload(data: bytes | None) -> View | None:
    """A key, value or header as it stands in Kafka."""
    if data is None:
        return None
    shown = data[:LONGEST_TEXT]
    cut: View = {"cut": True} if len(shown) < len(data) else {}
    try:
        return {"bytes": len(data), "text": shown.decode("utf-8", "ignore" if cut else "strict"), **cut}
    except UnicodeDecodeError:
        return {"bytes": len(data), "base64": base64.b64encode(shown).decode(), **cut}


def typed(record: Record) -> View:
    """A record as the chain has it."""
    at = {} if record.offset is None else {"offset": record.offset}
    return {
        "topic": record.topic,
        "partition": record.partition,
        **at,
        "timestamp_ms": record.timestamp_ms,
        "key": _value(record.key_schema, record.key),
        "value": _value(record.value_schema, record.value),
        "headers": [{"name": one.name, **_value(one.schema, one.value)} for one in record.headers],
    }


def _value(schema: Schema | None, value: Any) -> View:
    told: View = {"schema": None if schema is None else schema_text(schema)}
    try:
        text = _PLAIN.from_connect(Column([value], schema))[0]
        if text is not None and len(text) > LONGEST_JSON:
            return {**told, "text": text[:LONGEST_TEXT].decode("utf-8", "ignore"), "cut": True, "bytes": len(text)}
        return {**told, "value": None if text is None else json.loads(text)}
    except (
        ConnectError,
        RecursionError,
        ValueError,
    ) as error:  # what JSON has no words for is the converter's to judge
        return {**told, "text": f"not shown: {' '.join(str(error).split()) or type(error).__name__}"}


def schema_text(schema: Schema) -> str:
    """A schema in one line: `struct<id:int64,name:string?>`, logical and named ones `int64(…Timestamp)`, versions
    `#2`, what may be null with `?`."""
    kind = schema.type
    if schema.fields or kind == "struct":
        kind = f"struct<{','.join(_fields(schema))}>"
    elif kind == "array" and schema.value is not None:
        kind = f"array<{schema_text(schema.value)}>"
    elif kind == "map" and schema.key is not None and schema.value is not None:
        kind = f"map<{schema_text(schema.key)},{schema_text(schema.value)}>"
    name = schema.name or ""
    version = "" if schema.version is None else f"#{schema.version}"
    return f"{kind}{f'({name}{version})' if name or version else ''}{'?' if schema.optional else ''}"


def _fields(schema: Schema) -> Iterator[str]:
    return (f"{one.name}:{schema_text(one.schema)}" for one in schema.fields)


def _raw_headers(headers: Headers) -> list[View]:
    return [{"name": name, "value": payload(raw)} for name, raw in headers]
