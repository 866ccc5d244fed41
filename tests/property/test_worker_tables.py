"""The worker's tables as a model: after any writes and any compaction, all readers agree."""

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.kafka.writer import Record
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_records import PAUSED, STARTED, STOPPED
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.storage.offset_state import OffsetState, parsed_rows
from keelman.worker.storage.status_state import StatusState

NAMES = ("a", "a-1", "b")
PREFIXES = (
    "connector-",
    "target-state-",
    "tasks-fencing-",
    "task-",
    "commit-",
    "restart-connector-",
    "session-key",
    "",
)
STATUS_PREFIXES = ("status-connector-", "status-task-", "status-topic-", "status-", "")
GARBAGE = st.sampled_from([b"", b"nope", b"[1]", b"{}", b'{"properties":5}', b'{"tasks":"x"}', b'{"task-count":-1}'])
VALUES = st.none() | st.binary(max_size=8) | GARBAGE


@given(st.sampled_from(PREFIXES), st.text(max_size=6), VALUES, st.sampled_from(STATUS_PREFIXES))
@settings(max_examples=500, deadline=None)
def test_nothing_that_is_written_ends_a_worker(prefix: str, rest: str, value: bytes | None, status: str) -> None:
    config = ConfigState()
    assert isinstance(config.apply(prefix + rest, value, 41), str)
    assert config.offset == 42
    assert isinstance(StatusState().apply(status + rest, value), str)
    offsets = OffsetState()
    for key in (rest.encode(), b'["x",' + rest.encode() + b"]", b'["x",{"a":1}]'):
        assert isinstance(offsets.apply(key, value), str)
    for partition, offset in parsed_rows(offsets.of("x")):
        assert isinstance(partition, dict)
        assert isinstance(offset, dict)


ACTIONS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(NAMES), st.integers(0, 2)),
    st.tuples(st.just("tasks"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("target"), st.sampled_from(NAMES), st.sampled_from([STARTED, PAUSED, STOPPED])),
    st.tuples(st.just("stop"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("delete as Connect"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.sampled_from(["connector-", "target-state-", "commit-"]), st.sampled_from(NAMES), GARBAGE),
    st.tuples(st.just("task-"), st.sampled_from([f"{name}-{n}" for name in NAMES for n in range(3)]), GARBAGE),
)


class Topic:
    """The config topic, and a worker that has read all of it."""

    def __init__(self) -> None:
        self.rows: dict[bytes, tuple[int, bytes | None]] = {}
        self.state = ConfigState()
        self.end = 0

    def write(self, *written: Record) -> None:
        for key, value in written:
            self.rows[key] = self.end, value
            self.state.apply(key.decode(), value, self.end)
            self.end += 1

    def tasks(self, name: str, count: int) -> None:
        self.write(*records.task_records(name, [{"n": str(self.end)}] * count), records.commit_record(name, count))

    def act(self, what: str, name: str, more: object) -> None:
        there = name in self.state.connectors
        if what == "put":
            self.write(records.connector_record(name, {"v": str(more)}))
        elif what == "tasks" and there and isinstance(more, int):
            self.tasks(name, more)
        elif what == "target" and there:
            self.write(records.target_record(name, str(more)))
        elif what == "stop" and there:
            self.write(records.commit_record(name, 0), records.target_record(name, STOPPED))
        elif what == "delete" and there:
            self.write(*records.deletion_records(name, len(self.state.tasks.get(name, ()))))
        elif what == "delete as Connect":
            self.write((f"connector-{name}".encode(), None), (f"target-state-{name}".encode(), None))
        elif isinstance(more, bytes):
            self.write((f"{what}{name}".encode(), more))

    def lead(self) -> None:
        """The writes that a leader does by itself."""
        self.write(*self.state.leftovers())
        self.write(*self.state.restored())
        for name in sorted(self.state.lapsing):
            self.write(
                *records.task_records(name, self.state.tasks[name]),
                records.commit_record(name, len(self.state.tasks[name])),
            )
        for name in sorted(self.state.inconsistent & self.state.connectors.keys()):
            self.tasks(name, 2)

    def read_anew(self, *, tombstones: bool) -> ConfigState:
        """The state of a worker that starts after compaction."""
        state = ConfigState()
        for key, (offset, value) in sorted(self.rows.items(), key=lambda row: row[1][0]):
            if tombstones or value is not None:
                state.apply(key.decode(), value, offset)
        return state


@given(st.lists(ACTIONS, max_size=40), st.booleans())
@settings(max_examples=1000, deadline=None)
def test_who_reads_a_compacted_topic_knows_what_the_others_know(
    actions: list[tuple[str, str, object]], tombstones: bool
) -> None:
    topic = Topic()
    for what, name, more in actions:
        topic.act(what, name, more)
        topic.lead()
        state, anew = topic.state, topic.read_anew(tombstones=tombstones)
        assert anew.connectors == state.connectors
        assert {n: anew.target(n) for n in anew.connectors} == {n: state.target(n) for n in state.connectors}
        assert anew.work() == state.work()
        assert {work: anew.task(work) for work in anew.work()} == {work: state.task(work) for work in state.work()}
        assert not state.lapsing
        assert state.leftovers() == [] == state.restored()
