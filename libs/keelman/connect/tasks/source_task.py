"""The task of a source's reader, and the engine's services for a reader that makes payloads itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from keelman.connect.offsets import CommittedOffsets

T = TypeVar("T")


class SourceTarget(Protocol):
    """The destination of a source's records. Used only within `Reader.read`. Raises errors that end the run."""

    def partitions(self, topic: str) -> int:
        """Returns a topic's number of partitions; creates a missing topic first."""

    def batch_bytes(self, topic: str) -> int:
        """Returns the size limit of one packed batch for the topic."""

    def retry(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`; while it raises RetriableConnectError, it is repeated as long as
        `errors.retry.*` allow."""


@dataclass(frozen=True, slots=True)
class SourceTask:
    """`config` is the task's own configuration, without its connector's; `worker`: the worker's properties, named as in
    Java. `beat` must be called at least once a second while the reader opens; it raises when the run must end. In
    a preview, `dry`, nothing is written anywhere, not even a schema.
    """

    connector: str
    task: int
    config: Mapping[str, str]
    worker: Mapping[str, str]
    exactly_once: bool
    committed: CommittedOffsets
    target: SourceTarget
    beat: Callable[[], None]
    dry: bool = False
