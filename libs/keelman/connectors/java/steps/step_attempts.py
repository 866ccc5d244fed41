"""Tries one step of one record by the retry policy; raises a failure with the step that failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from keelman.connect.errors import ConnectError
from keelman.connect.failed_record import Stage
from keelman.connectors.java.errors import connect_error
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.steps.transforms import JavaStep

T = TypeVar("T")


class Retrying(Protocol):
    """Retries work for as long as `errors.retry.*` allow: the target of a source, the source of a sink."""

    def retry(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`."""


class StepFailed(Exception):
    """A step could not take a record."""

    def __init__(self, stage: Stage, error: ConnectError) -> None:
        super().__init__(str(error))
        self.stage, self.error = stage, error


class StepAttempts:
    """Tries the steps of one task; used by the thread of its copy run."""

    def __init__(self, retrying: Retrying) -> None:
        self._retrying = retrying

    def of(self, stage: Stage, work: Callable[[], T]) -> T:
        """Returns the result of `work`, retried by the policy. Raises StepFailed, and the exception that ends the
        run."""
        try:
            return self._retrying.retry(lambda: _translated(work))
        except ConnectError as error:
            raise StepFailed(stage, error) from error

    def transformed(self, record: Any, transforms: Sequence[JavaStep]) -> Any:
        """Returns the record after all transforms; None if one has dropped it. Raises as `of`."""
        changed = record
        for step in transforms:
            if changed is not None:
                changed = self.of(step.stage, lambda step=step, changed=changed: step.target.apply(changed))  # type: ignore[misc]
        return changed


def _translated(work: Callable[[], T]) -> T:
    try:
        return work()
    except jpype().JException as error:
        if not isinstance(error, java_class("java.lang.Exception")):
            raise  # an error of Java itself, such as OutOfMemoryError
        raise connect_error(error) from None
