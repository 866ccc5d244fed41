"""A connector's transforms, in their order, each with the predicate it is bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from keelman.connect.columns import ColumnBatch
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.plugin_kinds import Kind, resolved
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
class Step:
    """One transform under its alias, applied where its predicate holds, or with `negate` where it does not."""

    alias: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    def apply(self, record: Record) -> Record | None:
        """The record after this step; None when it is dropped. Raises StepError."""
        try:
            if self.predicate is not None and self.predicate.test(record) == self.negate:
                return record
            return self.transform.apply(record)
        except ConnectError as error:
            raise StepError(f"transform {self.alias}: {type(self.transform).name}", error) from error


class Chain:
    """The chain of one task; used by its thread alone."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """From a connector's configuration. Raises ConfigValueError."""
        self.steps = tuple(_step(config, alias) for alias in _listed(config, "transforms"))

    def columnar(self, batch: ColumnBatch) -> bool:
        """The same for a batch of equal records at once; False where a step must see each: forget the batch then."""
        try:
            return all(step.predicate is None and step.transform.columnar(batch) for step in self.steps)
        except ConnectError:
            return False  # which record it is about, the records will tell

    def apply(self, record: Record) -> Record | None:
        """The record behind all steps, None when one dropped it. Raises StepError."""
        found: Record | None = record
        for step in self.steps:
            if found is None:
                break
            found = step.apply(found)
        return found


def _listed(config: Mapping[str, str], key: str) -> list[str]:
    return [alias.strip() for alias in config.get(key, "").split(",") if alias.strip()]


def _step(config: Mapping[str, str], alias: str) -> Step:
    prefix = f"transforms.{alias}."
    own = under(prefix, config)
    make = _found(TRANSFORMS, Kind.TRANSFORMATION, f"{prefix}type", own)
    bound = own.get("predicate", "").strip()
    predicate = _predicate(config, bound) if bound else None
    return Step(alias, make(own), predicate, own.get("negate", "false").strip().lower() == "true")


def _predicate(config: Mapping[str, str], alias: str) -> Predicate:
    prefix = f"predicates.{alias}."
    own = under(prefix, config)
    return _found(PREDICATES, Kind.PREDICATE, f"{prefix}type", own)(own)


def _found(classes: Mapping[str, Made], kind: Kind, key: str, own: Mapping[str, str]) -> Made:
    name = own.get("type", "")
    full = resolved(name, dict.fromkeys(classes, (kind,)))
    if full is None:
        raise ConfigValueError(key, name, f"Class {name} could not be found.")
    return classes[full]
