"""Traces single records through a connector's converters and transforms, step by step: for previews and replays, not
for copying. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from keelman.connect.converters.configured import converter_for
from keelman.connect.converters.converter import Converter
from keelman.connect.errors import ConnectError, DataError
from keelman.connect.failed_record import CONVERTER_STAGES, TRANSFORMATION, StageName
from keelman.connect.record import Header, Record
from keelman.connect.records import Column, Headers
from keelman.connect.registry.interface import OpenRegistry
from keelman.connect.schema import Schema
from keelman.connect.transforms.chain import Chain, ChainStep


class StepFailure(Exception):
    """A record ends here: the stage in Connect's name, the step in the configuration's names, and the error."""

    def __init__(self, stage: str, step: str, error: ConnectError) -> None:
        super().__init__(str(error))
        self.stage, self.step, self.error = stage, step, error


@dataclass(frozen=True, slots=True)
class PreviewedRecord:
    """A record in the form for Kafka."""

    topic: str
    partition: int | None
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class StepResult:
    """A record after a transform, None if it was dropped; `holds` is its predicate's result, None without one."""

    alias: str
    negate: bool
    applied: bool
    holds: bool | None
    record: Record | None


OnStep = Callable[[StepResult], None]


def pass_over(_passed: StepResult) -> None:
    """Ignores the results of steps, for callers that need only the final result."""


class PreviewSteps(Protocol):
    """One connector's steps for single records. Used by one thread. All methods raise StepFailure."""

    def through(self, record: Record, on_step: OnStep = pass_over) -> Record | None:
        """Returns the record after all transforms; None when one dropped it."""

    def decode(self, record: Record, key: bytes | None, value: bytes | None, headers: Headers) -> Record:
        """Returns a topic's record with the values of key, value and headers."""

    def headers(self, headers: Headers) -> list[Header]:
        """Returns the values of headers."""

    def given(self, record: Record, headers: Headers) -> Record:
        """Returns a source's record as the first transform takes it, with the values of headers that were already
        written. Raises DataError too, for a record that cannot be given."""

    def written(self, record: Record, *, raw: bool) -> PreviewedRecord:
        """Returns a source's record in the form for Kafka; with `raw` it is in bytes already and stays unchanged."""


OpenSteps = Callable[[Mapping[str, str], Mapping[str, str], OpenRegistry], PreviewSteps]
"""Creates them from the configurations of a connector and its worker. Raises ConfigValueError, ConnectError."""


class RecordTrace:
    """One connector's steps. Used by one thread. All methods raise StepFailure."""

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry) -> None:
        """Raises ConfigValueError when a converter or a transform is not legal."""
        self._keys = converter_for("key", config, worker, open_registry)
        self._values = converter_for("value", config, worker, open_registry)
        self._headers = converter_for("header", config, worker)
        self._chain = Chain(config)

    def through(self, record: Record, on_step: OnStep = pass_over) -> Record | None:
        """Returns the record after all transforms; None when one dropped it."""
        current: Record | None = record
        for step in self._chain.steps:
            if current is None:
                break
            current = self._pass(step, current, on_step)
        return current

    def decode(self, record: Record, key: bytes | None, value: bytes | None, headers: Headers) -> Record:
        """Returns a topic's record with the values of key, value and headers."""
        with _at(CONVERTER_STAGES["key"], "key.converter"):
            record.key_schema, record.key = opened(self._keys.of_topic(record.topic), key)
        with _at(CONVERTER_STAGES["value"], "value.converter"):
            record.value_schema, record.value = opened(self._values.of_topic(record.topic), value)
        record.headers = self.headers(headers)
        return record

    def headers(self, headers: Headers) -> list[Header]:
        """Returns the values of headers."""
        result = []
        with _at(CONVERTER_STAGES["header"], "header.converter"):
            for name, raw in headers:
                result.append(Header(name, *opened(self._headers, raw), raw))
        return result

    def given(self, record: Record, headers: Headers) -> Record:
        """Returns a source's record with the values of headers that were already written."""
        record.headers = self.headers(headers)
        return record

    def written(self, record: Record, *, raw: bool) -> PreviewedRecord:
        """Returns a source's record in the form for Kafka; with `raw` existing bytes stay unchanged."""
        with _at(CONVERTER_STAGES["key"], "key.converter"):
            key = _closed(self._keys.of_topic(record.topic), record.key_schema, record.key, raw=raw)
        with _at(CONVERTER_STAGES["value"], "value.converter"):
            value = _closed(self._values.of_topic(record.topic), record.value_schema, record.value, raw=raw)
        with _at(CONVERTER_STAGES["header"], "header.converter"):
            headers = [(header.name, self._header_bytes(header)) for header in record.headers]
        return PreviewedRecord(record.topic, record.partition, record.timestamp_ms, key, value, headers)

    def _pass(self, step: ChainStep, record: Record, on_step: OnStep) -> Record | None:
        current: Record | None = record
        with _at(TRANSFORMATION, f"transforms.{step.alias}"):
            holds = None if step.predicate is None else step.predicate.test(record)
            applied = holds is None or holds != step.negate
            if applied:
                current = step.transform.apply(record)
        on_step(StepResult(step.alias, step.negate, applied, holds, current))
        return current

    def _header_bytes(self, header: Header) -> bytes | None:
        if header.raw is not None:
            return header.raw
        return self._headers.from_connect(Column([header.value], header.schema))[0]


@contextmanager
def _at(stage: StageName, step: str) -> Iterator[None]:
    try:
        yield
    except ConnectError as error:
        raise StepFailure(stage, step, error) from error
    except Exception as error:  # an error that Python itself raises about data is a fault of the data
        raise StepFailure(stage, step, DataError(f"{type(error).__name__}: {error}")) from error


def opened(converter: Converter, data: bytes | None) -> tuple[Schema | None, object]:
    """Returns the value of a single payload, with its schema. Raises DataError."""
    return one_of(converter.to_connect([data]), 0)


def one_of(column: Column, index: int) -> tuple[Schema | None, object]:
    """Returns one value of a column with its schema."""
    single = Column([column.values[index]], column.schema_of(index), utf8=column.utf8).texts()
    return single.schema, single.values[0]


def _closed(converter: Converter, schema: Schema | None, value: object, *, raw: bool) -> bytes | None:
    if raw and (value is None or isinstance(value, bytes)):
        return value
    return converter.from_connect(Column([value], schema))[0]
