"""Shows single records after each step of a connector's converters and transforms. Pure.

Each step's record is JSON for people and programs: `bytes` as in Kafka, with their size and their text or base64;
`typed` as in the chain, with schemas in one line. Long content is cut and marked as cut.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keelman.connect.bad_records.tolerance import Policy, known
from keelman.connect.converters.json_converter import JsonConverter
from keelman.connect.errors import ConnectError, in_one_line
from keelman.connect.previews.record_trace import (
    OpenSteps,
    PreviewedRecord,
    RecordTrace,
    StepFailure,
    StepResult,
    one_of,
)
from keelman.connect.record import Record
from keelman.connect.records import Column, Headers, SourceBatch
from keelman.connect.registry.dry import DryRegistry
from keelman.connect.registry.interface import OpenRegistry
from keelman.connect.schema import OPTIONAL_BYTES, Schema

LONGEST_TEXT = 4_096
LONGEST_JSON = 16_384
View = dict[str, Any]
_PLAIN = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"})


class Preview:
    """One connector's steps. Used by one thread."""

    def __init__(
        self,
        config: Mapping[str, str],
        worker: Mapping[str, str],
        open_registry: OpenRegistry,
        open_steps: OpenSteps = RecordTrace,
    ) -> None:
        """Registers nothing. Raises ConfigValueError if any key is not legal, and the errors of `open_steps`."""
        self._config = config
        self._policy = Policy.of(config, sink=False)
        self.new_schemas: list[str] = []
        """Subjects of the schema registry that would get a new schema from the previewed records."""
        self._walk = open_steps(config, worker, lambda opener: DryRegistry(open_registry(opener), self.new_schemas))

    def of_source(self, batch: SourceBatch, index: int) -> View:
        """Previews a reader's record, up to the record that would be written."""
        steps: list[View] = []

        def walk() -> str:
            record = self._read(batch, index)
            failed = batch.failed.get(index)
            if failed is not None:
                raise StepFailure(failed.stage.name, failed.stage.text, known(failed.error))
            steps.append({"step": "read", "record": typed(record)})
            after = self._walk.through(record, lambda passed: steps.append(self._passed(passed)))
            if after is None:
                return "dropped"
            steps.append({"step": "written", "record": _written(self._walk.written(after, raw=batch.raw))})
            return "written"

        return self._report(walk, steps)

    def of_sink(self, record: Record, key: bytes | None, value: bytes | None, headers: Headers) -> View:
        """Previews a topic's record up to the connector's input. `record` has all but key, value, headers."""
        read = PreviewedRecord(record.topic, record.partition, record.timestamp_ms, key, value, headers)
        steps: list[View] = [{"step": "read", "record": {"offset": record.offset, **_written(read)}}]

        def walk() -> str:
            converted = self._walk.decode(record, key, value, headers)
            steps.append({"step": "converted", "record": typed(converted)})
            after = self._walk.through(converted, lambda passed: steps.append(self._passed(passed)))
            return "dropped" if after is None else "given"

        return self._report(walk, steps)

    def _report(self, walk: Callable[[], str], steps: list[View]) -> View:
        try:
            return {"outcome": walk(), "steps": steps}
        except StepFailure as failed:
            error = {
                "stage": failed.stage,
                "step": failed.step,
                "class": failed.error.java_name,
                "message": in_one_line(failed.error),
                "then": self._then(),
            }
            return {"outcome": "failed", "steps": steps, "error": error}

    def _then(self) -> str:
        """Returns how `errors.tolerance` treats a record that fails."""
        if not self._policy.tolerant:
            return "the task fails (errors.tolerance=none)"
        topic = self._policy.dead_letters
        return f"the record becomes a dead letter in topic {topic}" if topic else "the record is skipped"

    def _read(self, batch: SourceBatch, index: int) -> Record:
        if batch.read:
            return batch.read[index]
        values, keys = batch.values, batch.keys
        if batch.raw:
            values = Column(values.values, OPTIONAL_BYTES)
            keys = None if keys is None else Column(keys.values, OPTIONAL_BYTES)
        key_schema, key = (None, None) if keys is None else one_of(keys, index)
        value_schema, value = one_of(values, index)
        return Record(
            batch.topic,
            None if batch.partitions is None else batch.partitions[index],
            key_schema,
            key,
            value_schema,
            value,
            None if batch.timestamps_ms is None else batch.timestamps_ms[index],
            [] if batch.headers is None else self._walk.headers(batch.headers[index] or ()),
        )

    def _passed(self, passed: StepResult) -> View:
        alias, step = passed.alias, f"transforms.{passed.alias}"
        view: View = {"step": "transform", "alias": alias, "class": self._config.get(f"{step}.type", "")}
        if passed.holds is not None:
            bound = self._config.get(f"{step}.predicate", "").strip()
            view["predicate"] = {
                "alias": bound,
                "class": self._config.get(f"predicates.{bound}.type", ""),
                "holds": passed.holds,
                "negate": passed.negate,
            }
        return {**view, "applied": passed.applied, "record": None if passed.record is None else typed(passed.record)}


def _written(record: PreviewedRecord) -> View:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp_ms": record.timestamp_ms,
        "key": payload(record.key),
        "value": payload(record.value),
        "headers": [{"name": name, "value": payload(raw)} for name, raw in record.headers],
    }


def payload(data: bytes | None) -> View | None:
    """Returns a key, value or header as it is in Kafka."""
    if data is None:
        return None
    shown = data[:LONGEST_TEXT]
    cut: View = {"cut": True} if len(shown) < len(data) else {}
    try:
        return {"bytes": len(data), "text": shown.decode("utf-8", "ignore" if cut else "strict"), **cut}
    except UnicodeDecodeError:
        return {"bytes": len(data), "base64": base64.b64encode(shown).decode(), **cut}


def typed(record: Record) -> View:
    """Returns a record as the chain has it."""
    at = {} if record.offset is None else {"offset": record.offset}
    return {
        "topic": record.topic,
        "partition": record.partition,
        **at,
        "timestamp_ms": record.timestamp_ms,
        "key": _value(record.key_schema, record.key),
        "value": _value(record.value_schema, record.value),
        "headers": [{"name": header.name, **_value(header.schema, header.value)} for header in record.headers],
    }


def _value(schema: Schema | None, value: Any) -> View:
    view: View = {"schema": None if schema is None else schema_text(schema)}
    try:
        text = _PLAIN.from_connect(Column([value], schema))[0]
        if text is not None and len(text) > LONGEST_JSON:
            return {**view, "text": text[:LONGEST_TEXT].decode("utf-8", "ignore"), "cut": True, "bytes": len(text)}
        return {**view, "value": None if text is None else json.loads(text)}
    except (
        ConnectError,
        RecursionError,
        ValueError,
    ) as error:  # the converter decides on values that JSON cannot express
        return {**view, "text": f"not shown: {' '.join(str(error).split()) or type(error).__name__}"}


def schema_text(schema: Schema) -> str:
    """Returns a schema in one line: `struct<id:int64,name:string?>`, logical and named ones `int64(…Timestamp)`,
    versions `#2`, optional ones with `?`."""
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
    return (f"{field.name}:{schema_text(field.schema)}" for field in schema.fields)
