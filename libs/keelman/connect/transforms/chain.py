"""A connector's transforms, in their order, each with the predicate it is bound to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from keelman.connect import step_factories
from keelman.connect.batch_splitting import batch_of, records_of, shaped
from keelman.connect.columns import ColumnBatch
from keelman.connect.config.plugin_kinds import PluginType, resolved
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.record import Record
from keelman.connect.transforms import PREDICATES, TRANSFORMS, Predicate, Transform
from keelman.model.keys import under

Made = TypeVar("Made")


class StepError(ConnectError):
    """A step of the chain could not take a record. Raised with the error of the step as its cause."""

    def __init__(self, step: str, error: ConnectError) -> None:
        super().__init__(f"{error} ({step})")
        self.step = step
        self.cause = error
        self.java_name = error.java_name


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One transform under its alias, applied where its predicate holds, or with `negate` where it does not."""

    alias: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    def apply(self, record: Record) -> Record | None:
        """Returns the record after this step; None when it is dropped. Raises StepError."""
        try:
            if self.predicate is not None and self.predicate.test(record) == self.negate:
                return record
            return self.transform.apply(record)
        except ConnectError as error:
            raise StepError(f"transform {self.alias}: {type(self.transform).name}", error) from error

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Applies the step to a batch of one shape by columns; None if it must see each record. Raises ConnectError.

        The batch given may be changed.
        """
        if self.predicate is None:
            return self.transform.columnar(batch)
        matches = self.predicate.columnar(batch)
        holds = matches if isinstance(matches, list) else [matches]
        applies = [place for place, hold in enumerate(holds) if hold != self.negate]
        if len(applies) in (0, len(holds)):
            return self.transform.columnar(batch) if applies else [batch]
        after = self.transform.columnar(batch.take(applies))
        others = batch.take([place for place, hold in enumerate(holds) if hold == self.negate])
        return None if after is None else [*after, others]


class Chain:
    """The chain of one task; used by its thread alone."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """Creates the chain of a connector's configuration. Raises ConfigValueError."""
        self.steps = tuple(_step(config, alias) for alias in step_factories.listed(config, "transforms"))
        self.of_headers = any(
            step.transform.of_headers or (step.predicate is not None and step.predicate.of_headers)
            for step in self.steps
        )
        """Whether a step reads or changes headers."""
        self.of_header_values = any(
            step.transform.of_header_values or (step.predicate is not None and step.predicate.of_header_values)
            for step in self.steps
        )
        """Whether a step may read headers' values."""
        self.ragged = 4
        """With fewer records per shape than this, on average, columns cost more than records."""

    def fused(self, batch: ColumnBatch) -> list[ColumnBatch]:
        """Returns all records of a batch after all steps, grouped by shape: in order within a batch, not among
        batches. Raises ConnectError without naming the record: `apply` does."""
        return self._fused(batch, 0)

    def _fused(self, batch: ColumnBatch, first: int) -> list[ColumnBatch]:
        if first == len(self.steps):
            return [batch]
        shapes = shaped(batch)
        if len(shapes) > 1 and len(shapes) * self.ragged > batch.count:
            return self._by_record(batch, first)
        batches: list[ColumnBatch] = []
        for shape in shapes:
            after = self.steps[first].columnar(shape)
            if after is None:
                batches += self._by_record(shape, first)
            else:
                for part in after:
                    batches += self._fused(part, first + 1)
        return batches

    def _by_record(self, batch: ColumnBatch, first: int) -> list[ColumnBatch]:
        records: list[Record] = []
        origins: list[int] = []
        for origin, record in zip(batch.origins, records_of(batch), strict=True):
            after = self._through(record, first)
            if after is not None:
                records.append(after)
                origins.append(origin)
        return batch_of(records, origins)

    def apply(self, record: Record) -> Record | None:
        """Returns the record after all steps, None when one dropped it. Raises StepError."""
        return self._through(record, 0)

    def _through(self, record: Record, first: int) -> Record | None:
        current: Record | None = record
        for step in self.steps[first:]:
            if current is None:
                break
            current = step.apply(current)
        return current


def _step(config: Mapping[str, str], alias: str) -> ChainStep:
    prefix = f"transforms.{alias}."
    own = under(prefix, config)
    make = _found(TRANSFORMS, PluginType.TRANSFORMATION, f"{prefix}type", own)
    bound = own.get("predicate", "").strip()
    predicate = _predicate(config, bound) if bound else None
    return ChainStep(alias, _made(make, own, prefix), predicate, own.get("negate", "false").strip().lower() == "true")


def _predicate(config: Mapping[str, str], alias: str) -> Predicate:
    prefix = f"predicates.{alias}."
    own = under(prefix, config)
    return _made(_found(PREDICATES, PluginType.PREDICATE, f"{prefix}type", own), own, prefix)


def _made(make: Callable[[Mapping[str, str]], Made], own: Mapping[str, str], prefix: str) -> Made:
    """Creates an object from its own keys. Raises ConfigValueError, which names the key as the connector has it."""
    try:
        return make(own)
    except ConfigValueError as error:
        text, whole = str(error), prefix + error.key
        named = text.replace(f"configuration {error.key}", f"configuration {whole}", 1)
        raise ConfigValueError(whole, error.value, whole=named if named != text else f"{whole}: {text}") from None


def _found(classes: Mapping[str, Made], kind: PluginType, key: str, own: Mapping[str, str]) -> Made:
    name = own.get("type", "")
    by_name: Mapping[str, Any] = {**step_factories.of_kind(kind), **classes}
    full = resolved(name, dict.fromkeys(by_name, (kind,)))
    if full is None:
        raise ConfigValueError(key, name, f"Class {name} could not be found.")
    make: Made = by_name[full]
    return make
