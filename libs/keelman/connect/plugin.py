"""The interface of a connector: a class with names, a configuration, tasks, and a reader or a writer.

The worker queries a connector's class for its configuration and tasks, in a process that copies nothing. The engine
opens one reader or writer per task, in the thread of its copy run, and closes it in the same thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from keelman.connect.bad_records.dead_letter import LetterProducer
from keelman.connect.config.definition import ConfigDef
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.offsets import AlteredOffsets
from keelman.connect.records import Offset, Partition, SinkBatch, SourceBatch, TopicPartition
from keelman.connect.tasks.data_set import DataSet, DataSink
from keelman.connect.tasks.kept_offsets import Assignment as Assignment  # noqa: PLC0414  re-exported
from keelman.connect.tasks.kept_offsets import KeptOffset as KeptOffset  # noqa: PLC0414  re-exported
from keelman.connect.tasks.own_metric import OwnMetric
from keelman.connect.tasks.sink_task import SinkTask as SinkTask  # noqa: PLC0414  re-exported
from keelman.connect.tasks.source_task import SourceTask
from keelman.connect.topic_plan import TopicPlan
from keelman.connect.watches import Watch

if TYPE_CHECKING:
    from keelman.connect.previews.record_trace import PreviewSteps
    from keelman.connect.registry.interface import OpenRegistry

Configured: TypeAlias = tuple[Mapping[str, str], Sequence[Mapping[str, str]]]
"""A connector's configuration and those of its tasks."""

LEAST_REFRESH_SECONDS = 1.0


class Direction(Enum):
    """Whether a connector writes to Kafka (source) or reads from it (sink)."""

    SOURCE = "source"
    SINK = "sink"


class Reader(ABC):
    """Reads one task's data. One thread calls it; a read must return within a second, with or without data."""

    lag_unit: Literal["bytes", "records"] = "bytes"
    """The unit of `left`."""
    sets_aside: bool = False
    """True for a reader that can `set_aside` a topic: the engine checks the target's limits before it sends any."""
    most_records: int | None = None
    """Set by the engine while a limit is in force or the target is slow: a read gives at most about this number of
    records."""

    most_bytes: int | None = None
    """Set by the engine while the target is slow, or not known yet: a read gives about as many bytes at most, a single
    record or packed batch at least. A reader that gives more may fill more than one transaction can deliver in time."""
    limits_bytes: bool = False
    """True if the reader keeps to `most_bytes`. Else `most_records` is set by the size of the records before."""
    codec: int | None = None
    """Set by the engine: the compression that packed records must have, as record batches number it; None for any."""
    rollbacks: int = 0
    """How often its source has taken back changes that it had given: the reader counts these here."""
    taken_back: int = 0
    """The most changes that were taken back so, which may be read again."""
    packs: bool = True
    """Set by the engine: whether records may be passed on packed; false if each of them is transformed."""

    @abstractmethod
    def partitions(self) -> Sequence[Partition]:
        """Returns the source partitions that this task alone reads; their offsets are written again after a fence."""

    @abstractmethod
    def read(self) -> SourceBatch | None:
        """Returns the next records, None when there are none now. Raises ConnectError to fail the task."""

    def left(self) -> int | None:
        """Returns the amount still to be read, None when not known. Called about once a second."""
        return None

    def glance(self) -> bool | None:
        """Whether a read might find something now; None when only a read can tell: one is tried now and then.

        Called many times a second while the engine waits, from another thread: it must be cheap, wait for nothing and
        change nothing. The next read, within a second, finds anything that it misses.
        """
        return None

    def watch(self) -> Watch | None:
        """Returns the condition to wait for when all is read; None if the reader must stay in its slot. Called when
        idle."""
        return None

    def caught_up(self) -> bool:
        """Whether the end of the data was met since the reader was opened; called for readers of a split task."""
        return self.watch() is not None

    def finished(self) -> bool:
        """Whether nothing is left to read, ever, and everything read is committed: the copy run then ends."""
        return False

    def wind_up(self) -> bool:
        """Begins nothing new, since the run is drained; returns whether there is still data to read that its source may
        not give again. Called before each read then."""
        return False

    def topic_plan(self, topic: str) -> TopicPlan | None:
        """Returns how to create a missing topic; None for the connector's `topic.creation.*`, as in Connect."""
        return None

    def committed(self) -> None:  # noqa: B027  most do not care
        """Called after each commit, in the thread that reads: everything read before is committed."""

    def waits_for(self) -> str:
        """Returns what the reader waits for before it can read at all, one line for people; empty if it can read."""
        return ""

    def set_aside(self, why: str) -> bool:
        """Called when the topic of the last batch does not take it, before any of it is sent: returns True if the
        reader gives it again later, and other topics meanwhile; False fails the task."""
        return False

    def aside(self) -> Mapping[str, int]:
        """Returns, for each topic that is read, the number of partitions set aside now."""
        return {}

    def metrics(self) -> Sequence[OwnMetric]:
        """Returns its own metrics, for the worker's /metrics; called every few seconds, in the thread that reads."""
        return ()

    def close(self) -> None:  # noqa: B027  most have nothing to give back
        """Releases all resources; called once, also after an error."""


class Writer(ABC):
    """Writes one task's data. One thread calls it."""

    keeps_offsets: bool = False
    """True when `commit` keeps offsets with the data, so that delivery is exactly once."""
    wants_keys: bool = False
    """True to get converted keys."""
    wants_payloads: bool = False
    """True to get keys and values as their bytes in Kafka, whatever the converters."""
    wants_origin: bool = False
    """True to get each record's origin, timestamp and headers."""
    zombie_seconds: float = 0.0
    """How long a writer that has lost its partitions may still make data visible: the group waits for longer
    before it gives them to another task. 0 for a writer that fences its predecessor at once."""
    hides_until_commit: bool = False
    """True when written data is invisible before `commit`, so that the engine commits when it has read all."""
    writes_behind: bool = False
    """True when `write` returns before its records are written, so that the engine reads the next ones meanwhile; it
    calls `settle` before it hands these over, counts anything as written, or commits."""
    left_out: int = 0
    """The number of records of the last `write` that were set aside: the writer gets them again."""
    commits_on_time: bool = False
    """True to be called as Kafka Connect calls its tasks: `commit` each `offset.flush.interval.ms`, with or without
    new records, and `idle` before it if none were read; it knows the first offset of each partition. When
    partitions come or go singly, `commit` has those that go, and `assigned` comes without `hand_over`."""
    letter_outlet: LetterProducer | None = None
    """The producer of its dead letters, to be committed with its offsets; None for a separate producer."""

    @property
    def full(self) -> bool:
        """Whether the engine should commit now, whatever the interval between commits."""
        return False

    @property
    def idle_seconds(self) -> float:
        """The time from its last records, or the last call of `idle`, to the next call of `idle`."""
        return 1.0

    @property
    def most_bytes(self) -> int | None:
        """About how much to give it at a time now, in bytes of the records as they are read; None: any."""
        return None

    def kept(self) -> Mapping[TopicPartition, KeptOffset]:
        """Returns the offsets kept with the data; only for writers that keep offsets. Called at each assignment."""
        return {}

    def take_over(self, assignment: Assignment) -> Mapping[TopicPartition, KeptOffset]:
        """Called at each assignment, for writers that keep offsets: returns its reader's; by default all of `kept`.

        Once it returns no other task can commit anything for these partitions. Raises ConnectError."""
        return self.kept()

    def hand_over(self) -> None:  # noqa: B027  most have nothing to give up
        """Called when the partitions of the last assignment are given up in order: all their records are committed, and
        none is written for them before the next assignment."""

    def assigned(self, partitions: Mapping[TopicPartition, int | None]) -> None:  # noqa: B027  most do not care
        """Called at each assignment, after `take_over`: the task has exactly these partitions from now on; each is read
        from this offset on, None where `auto.offset.reset` decides."""

    def lost(self) -> None:  # noqa: B027  most do not care
        """Called when another task got the partitions before a commit: it reads the uncommitted records again."""

    def idle(self) -> None:  # noqa: B027  most have nothing to do meanwhile
        """Called each `idle_seconds` while there is nothing to write. Raises ConnectError to fail the task."""

    def metrics(self) -> Sequence[OwnMetric]:
        """Returns its own metrics, for the worker's /metrics; called every few seconds."""
        return ()

    def waits_for(self) -> str:
        """Returns what the writer waits for, one line for people; empty if it writes everything that it is given."""
        return ""

    def aside(self) -> Mapping[str, int]:
        """Returns, per topic that is read, the number of partitions set aside now because their target refuses them."""
        return {}

    def committable(self) -> Mapping[TopicPartition, int] | None:
        """Returns the offsets up to which the group may commit, after each commit: the next run gets later records
        again. The offset of an unnamed partition stays unchanged. None for everything written."""
        return None

    def prepare(self, batch: SinkBatch) -> None:  # noqa: B027  most have nothing to prepare
        """Called with the batch of the next `write`, if `writes_behind`. Raises ConnectError to fail the task."""

    def settle(self, *, last: bool) -> None:  # noqa: B027  most have written all by then
        """Returns once all that `write` was given is written; only if `writes_behind`. `last`: no record may be tried
        again. Raises ConnectError to fail the task."""

    @abstractmethod
    def write(self, batch: SinkBatch) -> None:
        """Writes records; they need not be durable before the next commit. Raises ConnectError to fail the task."""

    @abstractmethod
    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Makes everything written so far durable, with the offsets of the assigned partitions if it keeps offsets.

        `clean` is true in the last commit of a run that was drained.
        """

    def close(self) -> None:  # noqa: B027  most have nothing to give back
        """Releases all resources; called once, also after an error. Uncommitted data may be lost."""


class Connector(ABC):
    """A connector's class. It is never instantiated: it has only class attributes and class methods."""

    names: ClassVar[tuple[str, ...]]
    """Full Java name, simple name, then aliases."""
    version: ClassVar[str]
    """Shown in Connect's REST answers."""
    direction: ClassVar[Direction]
    """Source or sink."""
    runs_on: ClassVar[Literal["node", "anywhere"]]
    """"node" when it needs its node's files or devices."""
    reads_data_sets: ClassVar[bool] = False
    """True for a source that has a `data_set`."""
    converts: ClassVar[bool] = False
    """True for a source whose batches are payloads after all transforms, and for a sink whose writer converts and
    transforms its input: the engine applies neither transforms nor converters."""
    planning_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys that only `task_configs` and `tend` read: a change of one does not restart an unchanged task."""
    asked_apart: ClassVar[bool] = False
    """True for a connector of ours that is queried in a separate process, like a third party's."""

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Returns the connector's own keys."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValueError]:
        """Returns a configuration's errors beyond single keys; none if keys are wrong. Called in a thread."""
        return ()

    @classmethod
    def completed(cls, config: Mapping[str, str], worker: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the configuration that the methods below get on a worker of these properties. Additions are neither
        stored nor shown. Called in any thread, in a worker not for a third party's class; does not block."""
        return config

    @classmethod
    @abstractmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """Returns one configuration per task, at most `max_tasks`. Called in a thread; may query other systems."""

    @classmethod
    @abstractmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Whether it can deliver exactly once with this configuration."""

    @classmethod
    def transaction_boundary_connector(cls, config: Mapping[str, str]) -> bool:
        """Whether its batches mark the ends of transactions (`transaction.boundary=connector`)."""
        return False

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        """Returns the interval of `tend_again`; None if only a new configuration requires a new query.

        For a connector that is queried in a separate process it is at least `LEAST_REFRESH_SECONDS`."""
        return None

    @classmethod  # noqa: B027  most have nothing to tend
    def tend(cls, config: Mapping[str, str]) -> None:
        """Does the work of the whole connector rather than of one task, e.g. adjusts the settings of topics. The
        group's leader calls it in a thread, before `task_configs`. May block for seconds. Raises ConnectError."""

    @classmethod
    def tend_again(cls, config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]) -> bool:
        """Called each `refresh_seconds`: returns True if it has tended everything and the connector keeps
        its present `tasks`; False, the default, to have `tend` and `task_configs` called. Otherwise like `tend`.

        Not called for a new configuration, after a user's restart, or after a change of the group's leader."""
        return False

    @classmethod
    def settled(cls, asked: Sequence[Configured]) -> Sequence[bool]:
        """Returns, for each of these connectors, whether it has nothing to tend now and keeps its present tasks.

        Called in a thread with all connectors that are due (`refresh_seconds`), many at once; only those that are
        not settled are then queried singly. May block for seconds, and raise: then all are queried.
        """
        return [False] * len(asked)

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Checks offsets that a user sets, or deletes (None), while the connector is stopped; called in a thread before
        anything is written. Returns False to tell users that the connector may keep offsets elsewhere too.

        A sink gets `{"kafka_topic", "kafka_partition"}` and `{"kafka_offset"}`. Raises ConnectError to refuse them.
        """
        return False

    @classmethod
    def resting(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Watch | None:
        """Returns the watch of a task that has copied all up to these offsets; None if only a reader can find out."""
        return None

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """Opens a source's reader for a task configuration; `offset` finds committed offsets. Raises ConnectError."""
        raise ConnectError(f"{cls.names[0]} is no source")

    @classmethod
    def open_task_reader(
        cls, config: Mapping[str, str], task: SourceTask, offset: Callable[[Partition], Offset | None]
    ) -> Reader:
        """Called by the engine; overridden by a reader that needs more of its task than `open_reader` gets."""
        return cls.open_reader(config, offset)

    @classmethod
    def open_steps(
        cls, config: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry
    ) -> PreviewSteps:
        """Returns the configuration's converters and transforms for single records, in a preview and in a replay of
        dead letters. A source that `converts` reads records for a preview as they are before conversion
        (`SourceBatch.read`). Raises ConfigValueError, ConnectError."""
        from keelman.connect.previews.record_trace import RecordTrace  # noqa: PLC0415  brings what only these need

        return RecordTrace(config, worker, open_registry)

    @classmethod
    def split(
        cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None], *, slots: int, least: int
    ) -> list[dict[str, str]]:
        """Returns the differing configuration keys of a task's parts; none if the task is not split.

        At least two and at most `slots` parts, for a backlog of `least` or more in the unit of `Reader.left`. Together
        they read each source partition of the task once and no other, and each commits the offsets that the task
        itself would: so a reunited task continues from them. Called before `open_reader`. Raises ConnectError.
        """
        return []

    @classmethod
    def data_set(cls, config: Mapping[str, str]) -> DataSet | None:
        """Returns the data set that Spark reads for a source; None if the source reads by itself. Raises ConnectError.

        The tasks of such a connector copy nothing themselves: they split their data set into Spark's parts (`split`),
        and the reader of a part is opened where Spark provides the part's rows (keelman.engine.slot.part_rows).
        """
        return None

    @classmethod
    def data_slots(cls, config: Mapping[str, str]) -> int:
        """Returns how many parts of a data set are read at the same time. Raises ConnectError."""
        return 1

    @classmethod
    def data_sink(cls, config: Mapping[str, str]) -> DataSink | None:
        """Returns Spark's target for ranges of offsets of a sink without a writer; else None. Raises ConnectError."""
        return None

    @classmethod
    def open_writer(cls, config: Mapping[str, str], connector: str, *, exactly_once: bool) -> Writer:
        """Opens a sink's writer for a task configuration; `connector` is its name. Raises ConnectError."""
        raise ConnectError(f"{cls.names[0]} is no sink")

    @classmethod
    def open_task_writer(cls, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> Writer:
        """Called by the engine; overridden by a writer that needs more of its task than `open_writer` gets."""
        return cls.open_writer(config, task.connector, exactly_once=exactly_once)
