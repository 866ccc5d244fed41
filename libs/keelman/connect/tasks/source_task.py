"""The task that a source's reader is opened for, and what the engine does for a reader that makes payloads itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from keelman.connect.offsets import CommittedOffsets

T = TypeVar("T")


class SourceTarget(Protocol):
    """Where a source's records go. To be asked within `Reader.read` only. Raises what ends the run."""

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; one that is not there is made first."""

    def batch_bytes(self, topic: str) -> int:
        """How much one packed batch for the topic may take."""

    def retry(self, work: Callable[[], T]) -> T:
        """What the work gives; while it raises RetriableConnectError it is done again for as long as `errors.retry.*`
        say."""


@dataclass(frozen=True, slots=True)
class SourceTask:
    """`config` is the task's own configuration, without its connector's; `worker`: the worker's properties, named as in
    Java. `beat` is to be called at least once a second while the reader is opened; it raises when the run must end. Of
    a preview, `dry`, nothing is written anywhere, no schema either.
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
