"""Converts and transforms a task's records: whole batches, or record by record if a batch has a bad record.

Batches are converted whole. Only when that raises are they converted record by record, each step by itself, to find
the bad records and the step that could not take them; all other records keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from keelman.connect.bad_records.dead_letter import RecordOrigin
from keelman.connect.bad_records.tolerance import RecordFailure
from keelman.connect.converters.configured import converter_for
from keelman.connect.converters.converter import Converter, Role
from keelman.connect.failed_record import Stage, converter_stage, transform_stage
from keelman.connect.record import Header, Record
from keelman.connect.records import Column, Headers
from keelman.connect.registry.interface import OpenRegistry, Reference, Registered, Registry, SchemaText
from keelman.connect.transforms.chain import Chain, ChainStep, StepError
from keelman.engine.control import CutShort, GaveUp
from keelman.engine.records.bad_records import BadRecords
from keelman.engine.records.fused import Fused
from keelman.engine.records.registries import open_registry
from keelman.model.errors import KeelmanError

Answer = TypeVar("Answer")
NO_FAULTS = (CutShort, GaveUp, KeelmanError, MemoryError, OSError)
"""Errors that no record causes. Any other error of a converter or transform counts as a record's: data can cause
any."""
T = TypeVar("T")


class AttendedRegistry:
    """A Registry that wraps another. A batch may need many answers, and a run that is silent for too long gets its
    slot recycled: so it beats before and after each request. Raises also CutShort, as `beat` does."""

    def __init__(self, inner: Registry, beat: Callable[[], None]) -> None:
        self._inner = inner
        self._beat = beat

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """Implements `Registry.register`."""
        return self._asked(partial(self._inner.register, subject, schema, normalize=normalize))

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> Registered:
        """Implements `Registry.lookup`."""
        return self._asked(partial(self._inner.lookup, subject, schema, normalize=normalize))

    def latest(self, subject: str, seconds: float) -> Registered:
        """Implements `Registry.latest`."""
        return self._asked(partial(self._inner.latest, subject, seconds))

    def schema(self, schema_id: int) -> SchemaText:
        """Implements `Registry.schema`."""
        return self._asked(partial(self._inner.schema, schema_id))

    def referenced(self, reference: Reference) -> SchemaText:
        """Implements `Registry.referenced`."""
        return self._asked(partial(self._inner.referenced, reference))

    def compatible(self, subject: str, version: str, schema: SchemaText) -> bool:
        """Implements `Registry.compatible`."""
        return self._asked(partial(self._inner.compatible, subject, version, schema))

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        self._beat()
        answer = ask()
        self._beat()
        return answer


def attended(open_registry: OpenRegistry, beat: Callable[[], None]) -> OpenRegistry:
    """Returns a function that opens registries that beat."""

    def opened(config: Mapping[str, str]) -> Registry:
        return AttendedRegistry(open_registry(config), beat)

    return opened


class Conversion:
    """Base of both directions: a task's converters and transforms, and the retries of a step."""

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str], bad: BadRecords) -> None:
        """Raises ConfigValueError when a converter or a transform is not legal."""
        opened = attended(open_registry, bad.beat)
        self._values = converter_for("value", config, worker, opened)
        self._keys = converter_for("key", config, worker, opened)
        self._headers = converter_for("header", config, worker)
        self._chain = Chain(config)
        self._fused = Fused(self._chain, self._values, self._keys, self._headers)
        self._bad = bad
        self._stages = {
            "value": converter_stage("value", self._values.name),
            "key": converter_stage("key", self._keys.name),
            "header": converter_stage("header", self._headers.name),
        }
        self._steps = [(step, _stage_of(step)) for step in self._chain.steps]
        self.plain = not self._chain.steps
        """Without transforms."""
        self.by_topic = self._values.by_topic or self._keys.by_topic
        """Whether payloads depend on the topic, so that a sink's batch needs each record's topic."""

    def retry(self, stage: Stage, whence: RecordOrigin, work: Callable[[], T]) -> T:
        """Returns the result of `work`, retried by the policy. Raises RecordFailure for its errors but NO_FAULTS."""
        try:
            return self._bad.retry(work)
        except StepError as error:
            raise RecordFailure(stage, error.cause, whence) from error.cause
        except NO_FAULTS:
            raise
        except Exception as error:
            raise RecordFailure(stage, error, whence) from error

    def decode(self, role: Role, payload: bytes | None, whence: RecordOrigin) -> Column:
        """Converts one payload from Kafka to a column of one value. Raises RecordFailure."""
        converter = self._converter(role).of_topic(whence.topic)
        return self.retry(self._stages[role], whence, lambda: converter.to_connect([payload]).texts())

    def encode(self, role: Role, column: Column, whence: RecordOrigin, topic: str) -> bytes | None:
        """Converts a column of one value to the payload for Kafka's topic. Raises RecordFailure."""
        converter = self._converter(role).of_topic(topic)
        return self.retry(self._stages[role], whence, lambda: converter.from_connect(column))[0]

    def decode_headers(self, headers: Headers | None, whence: RecordOrigin) -> list[Header]:
        """Converts headers from Kafka. Raises RecordFailure."""
        if not headers:
            return []
        return self.retry(self._stages["header"], whence, lambda: [self._header(n, raw) for n, raw in headers])

    def encode_headers(self, headers: list[Header], whence: RecordOrigin) -> Headers:
        """Converts headers for Kafka. Raises RecordFailure."""
        if not headers:
            return ()
        return self.retry(self._stages["header"], whence, lambda: tuple(map(self._fused.raw_header, headers)))

    def transform(self, record: Record, whence: RecordOrigin) -> Record | None:
        """Returns the record after all transforms, None when one dropped it. Raises RecordFailure."""
        current: Record | None = record
        for step, stage in self._steps:
            if current is None:
                break
            current = self._stepped(step, stage, current, whence)
        return current

    def _stepped(self, step: ChainStep, stage: Stage, record: Record, whence: RecordOrigin) -> Record | None:
        return self.retry(stage, whence, lambda: step.apply(record))

    def _converter(self, role: Role) -> Converter:
        return {"value": self._values, "key": self._keys, "header": self._headers}[role]

    def _header(self, name: str, raw: bytes | None) -> Header:
        column = self._headers.to_connect([raw]).texts()
        return Header(name, column.schema_of(0), column.values[0], raw)


def _stage_of(step: ChainStep) -> Stage:
    return transform_stage(step.alias, step.transform.class_name)
