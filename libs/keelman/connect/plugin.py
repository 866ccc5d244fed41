"""The interface of a connector: a class with names, a configuration, tasks, and a reader or a writer.

The worker asks a connector's class for its configuration and tasks, in a process that copies nothing. The engine opens
one reader or writer a task, in the thread of its copy run, and closes it in the same thread.
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
    from keelman.connect.previews.record_trace import Steps
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
    """What `left` counts."""
    sets_aside: bool = False
    """True for a reader that can `set_aside` a topic: what its target takes is looked at before anything is sent."""
    most_records: int | None = None
    """Set by the engine while a limit is in force or the target is slow: a read gives no more records than that, or not
    many more."""

    most_bytes: int | None = None
    """Set by the engine while the target is slow, or not known yet: a read gives about as many bytes at most, a single
    record or packed batch at least. A reader that gives more may fill more than one transaction can deliver in time."""
    limits_bytes: bool = False
    """True for one that keeps to `most_bytes`. For others `most_records` is set by the size of the records before."""
    codec: int | None = None
    """Set by the engine: the compression that packed records must have, as record batches number it; None for any."""
    rollbacks: int = 0
    """How often its source has taken back what it had given: a reader that meets that counts it here."""
    taken_back: int = 0
    """How many changes those were at most, which may be read again."""
    packs: bool = True
    """Set by the engine: whether records may be passed on packed; not where each of them is transformed."""

    @abstractmethod
    def partitions(self) -> Sequence[Partition]:
        """The source partitions that this task alone reads; their offsets are written again after a fence."""

    @abstractmethod
    def read(self) -> SourceBatch | None:
        """The next records, None when there are none now. Raises ConnectError to fail the task."""

    def left(self) -> int | None:
        """What waits to be read, None when not known. Called about once a second."""
        return None

    def glance(self) -> bool | None:
        """Whether a read might find something now; None when only a read can: one is tried now and then.

        Called many times a second while the engine waits, from another thread: it must be cheap, wait for nothing and
        change nothing. What it overlooks is found by the next read, within a second.
        """
        return None

    def watch(self) -> Watch | None:
        """What to wait for when all is read; None for a reader that must stay in its slot. Asked when idle."""
        return None

    def caught_up(self) -> bool:
        """Whether the end of the data was met since the reader was opened; asked of the readers of a split task."""
        return self.watch() is not None

    def finished(self) -> bool:
        """Whether nothing is left to read, ever, and all that was read is committed: the copy run then ends."""
        return False

    def wind_up(self) -> bool:
        """Begins nothing new, for the run is drained; whether there is still something to read that its source may not
        give again. Called before each read then."""
        return False

    def topic_plan(self, topic: str) -> TopicPlan | None:
        """How to make a topic that is not there; None for the connector's `topic.creation.*`, as in Connect."""
        return None

    def committed(self) -> None:  # noqa: B027  most do not care
        """All that was read before is committed; called after each commit, in the thread that reads."""

    def waits_for(self) -> str:
        """What the reader waits for before it can read at all, one line for people; empty when it can read."""
        return ""

    def set_aside(self, why: str) -> bool:
        """The topic of the last batch does not take it, nothing of it is sent: True where it is given again later, and
        other topics meanwhile; False fails the task."""
        return False

    def aside(self) -> Mapping[str, int]:
        """How many partitions of each topic that is read are set aside now."""
        return {}

    def metrics(self) -> Sequence[OwnMetric]:
        """What it counts by itself, for the worker's /metrics; asked every few seconds, in the thread that reads."""
        return ()

    def close(self) -> None:  # noqa: B027  most have nothing to give back
        """Gives everything back; called once, also after an error."""


class Writer(ABC):
    """Writes one task's data. One thread calls it."""

    keeps_offsets: bool = False
    """True when `commit` keeps offsets with the data, so that delivery is exactly once."""
    wants_keys: bool = False
    """True to be given converted keys."""
    wants_payloads: bool = False
    """True to be given keys and values as the bytes that they are in Kafka, whatever the converters."""
    wants_origin: bool = False
    """True to be given where each record came from, its timestamp and its headers."""
    zombie_seconds: float = 0.0
    """How long a writer that has lost its partitions may still make something visible: the group waits for longer
    before it gives them to another task. 0 for a writer that shuts its predecessor out at once."""
    hides_until_commit: bool = False
    """True when nobody sees what is written before `commit`, so that the engine commits when it has read all."""
    writes_behind: bool = False
    """True when `write` returns before its records are written, so that the engine reads the next ones meanwhile; it
    calls `settle` before it hands these over, counts anything as written, or commits."""
    left_out: int = 0
    """How many records of the last `write` it has set aside: they are given to it again."""
    commits_on_time: bool = False
    """True to be called as Kafka Connect calls its tasks: `commit` each `offset.flush.interval.ms`, whether there is
    news or not, and `idle` before it where nothing was read; it knows the first offset of each partition. Where
    partitions come or go alone, `commit` has those that go, and `assigned` comes without `hand_over`."""
    letter_outlet: LetterProducer | None = None
    """What its dead letters go through, to be committed with its offsets; None for a producer of their own."""

    @property
    def full(self) -> bool:
        """Whether it should commit now, whatever the interval between commits."""
        return False

    @property
    def idle_seconds(self) -> float:
        """How long after its last records, or the last call of `idle`, it is called there next."""
        return 1.0

    @property
    def most_bytes(self) -> int | None:
        """About how much it should be given at a time now, in bytes of the records as they are read; None: any."""
        return None

    def kept(self) -> Mapping[TopicPartition, KeptOffset]:
        """The offsets kept with the data; only for writers that keep offsets. Called at each assignment."""
        return {}

    def take_over(self, assignment: Assignment) -> Mapping[TopicPartition, KeptOffset]:
        """Called at each assignment, for writers that keep offsets: those of its reader; by default all that is `kept`.

        Once it returns no other task can commit anything for these partitions. Raises ConnectError."""
        return self.kept()

    def hand_over(self) -> None:  # noqa: B027  most have nothing to give up
        """The partitions of the last assignment are given up in good order: all of them is committed, and nothing is
        written for them any more before the next assignment."""

    def assigned(self, partitions: Mapping[TopicPartition, int | None]) -> None:  # noqa: B027  most do not care
        """These partitions are its task's from now on, and no others; each is read from this offset on, None where
        `auto.offset.reset` decides. Called at each assignment, behind `take_over`."""

    def lost(self) -> None:  # noqa: B027  most do not care
        """The partitions went to another task before this one could commit: it reads again what was not committed."""

    def idle(self) -> None:  # noqa: B027  most have nothing to do meanwhile
        """Called each `idle_seconds` while there is nothing to write. Raises ConnectError to fail the task."""

    def metrics(self) -> Sequence[OwnMetric]:
        """What it counts by itself, for the worker's /metrics; asked every few seconds."""
        return ()

    def waits_for(self) -> str:
        """What the writer waits for, one line for people; empty when it writes all that it is given."""
        return ""

    def aside(self) -> Mapping[str, int]:
        """How many partitions of each topic that is read are set aside now: their target does not take them."""
        return {}

    def committable(self) -> Mapping[TopicPartition, int] | None:
        """How far the group may commit, asked after each commit: what is behind that is given again to the next run.
        A partition that is not named stays as it is. None for all that was written."""
        return None

    def prepare(self, batch: SinkBatch) -> None:  # noqa: B027  most have nothing to prepare
        """Called with what the next `write` gets, where `writes_behind`. Raises ConnectError to fail the task."""

    def settle(self, *, last: bool) -> None:  # noqa: B027  most have written all by then
        """Returns once all that `write` was given is written; only where `writes_behind`. `last` says that nothing may
        be tried again. Raises ConnectError to fail the task."""

    @abstractmethod
    def write(self, batch: SinkBatch) -> None:
        """Writes records; they need not be durable before the next commit. Raises ConnectError to fail the task."""

    @abstractmethod
    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Makes everything written so far durable, with the offsets of the assigned partitions if it keeps offsets.

        `clean` is true in the last commit of a run that was drained.
        """

    def close(self) -> None:  # noqa: B027  most have nothing to give back
        """Gives everything back; called once, also after an error. What is not committed may be lost."""


class Connector(ABC):
    """A connector's class. Nothing is ever made of it: all it has are class attributes and class methods."""

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
    """True for a source whose batches are payloads behind all transforms, and for a sink whose writer converts and
    transforms what it is given: the engine applies no transforms, nor converters."""
    planning_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys that `task_configs` and `tend` alone look at: a change of one restarts no task that stays as it was."""
    asked_apart: ClassVar[bool] = False
    """True for a connector that we ship which is asked in a process of its own, as if it were a third party's."""

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """The connector's own keys."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValueError]:
        """What is wrong with a configuration beyond single keys; nothing where keys are wrong. Called in a thread."""
        return ()

    @classmethod
    @abstractmethod
    def task_configs(cls, config: Mapping[str, str], max_tasks: int) -> list[dict[str, str]]:
        """One configuration a task, at most `max_tasks` of them. Called in a thread; may ask the outside world."""

    @classmethod
    @abstractmethod
    def supports_exactly_once(cls, config: Mapping[str, str]) -> bool:
        """Whether it can deliver exactly once with this configuration."""

    @classmethod
    def transaction_boundary_connector(cls, config: Mapping[str, str]) -> bool:
        """Whether its batches say where transactions end (`transaction.boundary=connector`)."""
        return False

    @classmethod
    def refresh_seconds(cls, config: Mapping[str, str]) -> float | None:
        """How often it is asked again, by `tend_again`; None for only when the configuration changes.

        Where that is done in a process of its own, it is `LEAST_REFRESH_SECONDS` or more."""
        return None

    @classmethod  # noqa: B027  most have nothing to tend
    def tend(cls, config: Mapping[str, str]) -> None:
        """Does what is the whole connector's and no task's, e.g. brings the settings of topics in line. The group's
        leader calls it in a thread, before `task_configs`. May block for seconds. Raises ConnectError."""

    @classmethod
    def tend_again(cls, config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]) -> bool:
        """When it is time again (`refresh_seconds`): True when it has tended all that is to be and the connector keeps
        these tasks, which it has; False, as by default, for `tend` and `task_configs` to be called. Like `tend`.

        Not called for a new configuration, after a user's restart, or where the group has another leader."""
        return False

    @classmethod
    def settled(cls, asked: Sequence[Configured]) -> Sequence[bool]:
        """Which of these connectors, if they were asked now, would tend nothing and want the tasks that they have.

        Called in a thread with those for which it is time again (`refresh_seconds`), many at once; only those that are
        not settled are asked. May block for seconds, and raise: then all are asked.
        """
        return [False] * len(asked)

    @classmethod
    def alter_offsets(cls, config: Mapping[str, str], offsets: AlteredOffsets) -> bool:
        """Checks offsets that a user sets, or deletes (None), while the connector is stopped; asked in a thread before
        anything is written. False when users are to read that the connector may keep offsets elsewhere too.

        A sink is given `{"kafka_topic", "kafka_partition"}` and `{"kafka_offset"}`. Raises ConnectError to refuse them.
        """
        return False

    @classmethod
    def resting(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Watch | None:
        """What a task waits for that has copied all up to these offsets; None where only a reader can find out."""
        return None

    @classmethod
    def open_reader(cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None]) -> Reader:
        """A source's reader for a task configuration; `offset` looks committed offsets up. Raises ConnectError."""
        raise ConnectError(f"{cls.names[0]} is no source")

    @classmethod
    def open_task_reader(
        cls, config: Mapping[str, str], task: SourceTask, offset: Callable[[Partition], Offset | None]
    ) -> Reader:
        """What the engine calls: for a reader that must know more of its task than `open_reader` gets."""
        return cls.open_reader(config, offset)

    @classmethod
    def open_steps(cls, config: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry) -> Steps:
        """Its converters and transforms for single records, in a preview and in a replay of dead letters: those of its
        configuration. A source that `converts` reads records for a preview as they are before that
        (`SourceBatch.read`). Raises ConfigValueError, ConnectError."""
        from keelman.connect.previews.record_trace import RecordTrace  # noqa: PLC0415  brings what only these need

        return RecordTrace(config, worker, open_registry)

    @classmethod
    def split(
        cls, config: Mapping[str, str], offset: Callable[[Partition], Offset | None], *, slots: int, least: int
    ) -> list[dict[str, str]]:
        """What the readers of a task's parts have otherwise in their configurations; none when it is not to be split.

        At least two and at most `slots` parts, for a backlog of `least` or more in the unit of `Reader.left`. Together
        they read each source partition of the task once and no other, and each commits the offsets that the task
        itself would: so a task that is whole again goes on from them. Called before `open_reader`. Raises ConnectError.
        """
        return []

    @classmethod
    def data_set(cls, config: Mapping[str, str]) -> DataSet | None:
        """What Spark reads for a source; None for one that reads by itself. Raises ConnectError.

        The tasks of such a connector copy nothing themselves: they split their data set into Spark's parts (`split`),
        and the reader of a part is opened where Spark hands the part's rows out (keelman.engine.slot.part_rows).
        """
        return None

    @classmethod
    def data_slots(cls, config: Mapping[str, str]) -> int:
        """How many parts of a data set are read at the same time. Raises ConnectError."""
        return 1

    @classmethod
    def data_sink(cls, config: Mapping[str, str]) -> DataSink | None:
        """What Spark writes for a sink without a writer, ranges of offsets; None for others. Raises ConnectError."""
        return None

    @classmethod
    def open_writer(cls, config: Mapping[str, str], connector: str, *, exactly_once: bool) -> Writer:
        """A sink's writer for a task configuration; `connector` is its name. Raises ConnectError."""
        raise ConnectError(f"{cls.names[0]} is no sink")

    @classmethod
    def open_task_writer(cls, config: Mapping[str, str], task: SinkTask, *, exactly_once: bool) -> Writer:
        """What the engine calls: for a writer that must know more of its task than `open_writer` gets."""
        return cls.open_writer(config, task.connector, exactly_once=exactly_once)
