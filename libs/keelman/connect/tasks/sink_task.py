"""The task of a sink's writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keelman.connect.tasks.sink_source import SinkSource


@dataclass(frozen=True, slots=True)
class SinkTask:
    """The task that a writer is opened for.

    `worker`: the worker's properties, named as in Java. `beat` is called at least once a second by a writer that waits;
    it raises when the run must end at once. `report` is called within `write` for a record that cannot be written, with
    its index and the error: it applies `errors.tolerance`, or raises the error that fails the task. `config` is the
    task's own configuration, without its connector's; `source` is for writers that steer the reading."""

    connector: str
    task: int
    worker: Mapping[str, str]
    beat: Callable[[], None]
    report: Callable[[int, Exception], None]
    config: Mapping[str, str] = field(default_factory=dict)
    source: SinkSource | None = None
