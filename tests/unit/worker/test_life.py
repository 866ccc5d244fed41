"""Configuration changes that affect a task, fencing, stalled tasks, and the present frame of a thread."""

import math
import subprocess
import sys
import threading
import time

import orjson
import pytest

from keelman.api.copy.v1.copy_run_pb2 import CopyProgress
from keelman.connect.errors import ConfigValueError
from keelman.connectors.tools.mock import MockReader
from keelman.connectors.tools.mock import _Mock as Mock
from keelman.engine.run import bound_slot, method_in
from keelman.model.errors import InvalidArgument
from keelman.model.work import Work
from keelman.worker.asking.connector_class import tasks_of
from keelman.worker.asking.third_party import to_ask
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_state import ConfigState, InForce
from keelman.worker.storage.status_state import Status, StatusState
from keelman.worker.tasks.effective_config import changed_tasks, effective_config
from keelman.worker.tasks.watermark import Watermark, stall_seconds
from keelman.workers.properties.plugin_bounds import PluginBounds, plugin_bounds

MIRROR = {"connector.class": "MirrorSource", "topics": "a", "tasks.max": "2"}


def in_force(config: dict[str, str], *tasks: dict[str, str]) -> InForce:
    return config, tuple({**config, **task} for task in tasks)


def test_a_task_feels_what_its_slot_may_act_on() -> None:
    plain = effective_config(MIRROR, {"n": "0"})
    unfelt = {"topics": "b", "tasks.max": "3", "keelman.limit.records.per.second": "5", "keelman.stall.after.ms": "1"}
    assert effective_config({**MIRROR, **unfelt}, {"n": "0", "refresh.topics.enabled": "false"}) == plain
    for key in ("n", "key.converter", "source.consumer.fetch.min.bytes"):
        assert effective_config({**MIRROR, key: "1"}, {"n": "0", key: "1"}) != plain, key
    sink = {"connector.class": "FileStreamSink", "topics": "a"}
    assert effective_config(sink, {}) != effective_config({**sink, "topics": "b"}, {}), "a sink's tasks read its topics"
    assert effective_config({"connector.class": "com.acme.Gone"}, {}) == {"connector.class": "com.acme.Gone"}


def test_what_is_the_same_task_still_is_not_fenced() -> None:
    idle, first, other = {"n": "0"}, {"n": "1"}, {"n": "other"}
    former = in_force(MIRROR, idle, first)
    assert changed_tasks([former], in_force({**MIRROR, "topics": "a,b"}, idle, first), 2) == []
    assert changed_tasks([former], in_force(MIRROR, idle, other), 2) == [1]
    assert changed_tasks([former], in_force(MIRROR, idle), 2) == [1], "gone"
    assert changed_tasks([former], in_force(MIRROR, idle, first, other), 2) == [], (
        "a new process has no former identity"
    )
    assert changed_tasks([former], in_force({**MIRROR, "consumer.x": "y"}, idle, first), 2) == [0, 1]
    between = in_force(MIRROR, other, first)
    assert changed_tasks([former, between], former, 2) == [0], "it was another one meanwhile"
    assert changed_tasks([former, None], former, 2) == [0, 1], "the former content is unknown"


def test_former_tasks_are_known_until_they_are_fenced() -> None:
    state = ConfigState()

    def apply(*written: tuple[bytes, bytes | None]) -> None:
        for key, value in written:
            state.apply(key.decode(), value, state.offset)

    def tasks(*names: str) -> list[tuple[bytes, bytes | None]]:
        return [*records.task_records("x", [{"n": n} for n in names]), records.commit_record("x", len(names))]

    apply(records.connector_record("x", {"a": "1"}), *tasks("0", "1"))
    assert state.former == {"x": [None]}
    apply(records.fencing_record("x", 2))
    assert state.former == {}
    apply(records.connector_record("x", {"a": "2"}), *tasks("0", "2"), *tasks("3"))
    assert state.former == {
        "x": [({"a": "1"}, ({"n": "0"}, {"n": "1"})), ({"a": "2"}, ({"n": "0"}, {"n": "2"}))],
    }
    apply((b"connector-x", None))
    assert state.former == {}


def test_a_task_is_stalled_when_there_is_something_to_copy() -> None:
    mark = Watermark(100.0)
    mark.note("run", CopyProgress(records=5, lag=0), 110.0)
    assert (mark.moved_at, mark.records) == (110.0, 5)
    assert mark.stalled_seconds(1000.0, 60.0) is None, "nothing to copy"
    mark.note("run", CopyProgress(records=5, lag=9), 150.0)
    mark.note("part", CopyProgress(records=0), 150.0)
    assert mark.lag == 9
    assert mark.stalled_seconds(209.0, 60.0) is None, "before there was something it could not move"
    assert mark.stalled_seconds(210.0, 60.0) == 60.0
    mark.note("run", CopyProgress(records=5, lag=8), 211.0)
    assert mark.stalled_seconds(211.0, 60.0) == 61.0, "less is left, and nothing was committed"
    mark.note("part", CopyProgress(records=1, lag=3), 212.0)
    assert (mark.stalled_seconds(213.0, 60.0), mark.records, mark.lag) == (None, 6, 11)
    mark.begun()
    assert mark.lag == 0, "the leftovers of former copy runs are not counted"


def test_a_failed_copy_run_does_not_begin_the_time_without_progress_anew() -> None:
    mark = Watermark(100.0)
    assert not mark.note("one", CopyProgress(lag=9), 110.0)
    mark.begun(after_failure=True)
    assert mark.lag == 9, "until the next one tells"
    assert not mark.note("two", CopyProgress(), 150.0)
    assert not mark.note("two", CopyProgress(lag=8), 160.0)
    assert (mark.lag, mark.stalled_seconds(170.0, 60.0)) == (8, 60.0)
    assert mark.note("two", CopyProgress(records=1, lag=7), 171.0)
    assert mark.stalled_seconds(172.0, 60.0) is None


def test_intervals_that_hold_commits_back_stall_nothing() -> None:
    assert stall_seconds({}, {}) == 60.0
    assert stall_seconds({"keelman.stall.after.ms": "-1"}, {"keelman.stall.after.ms": "5"}) == math.inf
    assert stall_seconds({}, {"keelman.commit.interval.ms": "600000"}) == 1200.0
    interval = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "90000"}
    assert stall_seconds(interval, {}) == 180.0
    assert stall_seconds({"transaction.boundary": "CONNECTOR"}, {}) == math.inf
    with pytest.raises(InvalidArgument, match=r"soon for configuration keelman\.stall\.after\.ms: Not a number"):
        stall_seconds({"keelman.stall.after.ms": "soon"}, {})


def test_what_connect_has_no_words_for_has_a_field_of_its_own() -> None:
    status = Status("RUNNING", "h:1", 4, None, "1", {"restart": {"attempt": 3}})
    assert orjson.loads(status.value())["keelman"] == {"restart": {"attempt": 3}}
    state = StatusState()
    state.apply("status-task-x-0", status.value())
    assert (state.attempts(Work("x", 0)), state.attempts(Work("x", 1))) == (3, 0)
    state.apply("status-task-x-0", b'{"state":"RUNNING","worker_id":"h:1","generation":4,"keelman":7}')
    assert state.attempts(Work("x", 0)) == 0


def test_only_a_task_that_was_well_is_settled() -> None:
    state, work = StatusState(), Work("x", 0)
    assert not state.settled(work), "it has never been on any worker"
    for status, settled in (
        (Status("RUNNING", "h:1", 4), True),
        (Status("UNASSIGNED", "h:1", 4), True),
        (Status("RUNNING", "h:1", 4, None, "1", {"restart": {"attempt": 3}}), False),
        (Status("UNASSIGNED", "h:1", 4, None, "1", {"failed": True}), False),
        (Status("UNASSIGNED", "h:1", 4, "waits for a copy run"), False),
        (Status("FAILED", "h:1", 4, "trace"), False),
        (Status("RESTARTING", "h:1", 4), False),
    ):
        state.apply("status-task-x-0", status.value())
        assert state.settled(work) is settled, status


def test_where_a_thread_stands() -> None:
    faults, ready, go = object(), threading.Event(), threading.Event()

    class Slow(MockReader):
        def read(self) -> None:
            ready.set()
            go.wait(30)

    thread = threading.Thread(target=Slow(faults, None).read)  # type: ignore[arg-type]
    thread.start()
    assert ready.wait(30)
    method = method_in(sys._current_frames()[thread.ident or 0])
    go.set()
    thread.join()
    assert method.endswith(f"Slow.read ({__file__.rpartition('/')[2]}:{Slow.read.__code__.co_firstlineno + 2})"), method


def test_a_flood_is_slowed_down() -> None:
    code = (
        "import os; from keelman.runtime.processes.output_brake import brake_output\n"
        "brake_output(50_000, lambda: 'acme.Flood.poll')\n"
        "for _ in range(35): os.write(1, b'x' * 9_999 + b'\\n')\n"  # several windows: a busy machine may miss one
    )
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    # One second's allowance at once, and as much as a pipe holds; the rest waits.
    assert time.monotonic() - begun > 1.0
    assert done.stdout == b""
    assert done.stderr.startswith(b"xxxx")
    logged = [line for line in done.stderr.splitlines() if not line.startswith(b"x")]
    assert logged == [b"acme.Flood.poll writes more than its output takes, 50000 bytes a second: it is held back"]


def test_memory_is_bound_beside_what_a_process_has_set_aside() -> None:
    code = (
        "import mmap; from keelman.runtime.processes.output_brake import bound_memory\n"
        "reserved = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "for _ in range(2): bound_memory(256 << 20)\n"
        "kept = bytearray(128 << 20)\n"
        "try:\n    more = bytearray(256 << 20)\n"
        "except MemoryError:\n    bound_memory(256 << 20)\n    print('bound')\n"
        "try:\n    more = bytearray(256 << 20)\n"
        "except MemoryError:\n    print('still')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60, text=True)
    assert done.stdout == "bound\nstill\n"


def test_bounds_of_third_party_code() -> None:
    assert plugin_bounds({}) == PluginBounds(30.0, 2 << 30)
    assert plugin_bounds({"keelman.plugin.host.memory.bytes": "0"}).host_memory == 0
    with pytest.raises(InvalidArgument, match=r"keelman\.plugin\.answer\.timeout\.ms: '0' is not legal"):
        plugin_bounds({"keelman.plugin.answer.timeout.ms": "0"})
    with pytest.raises(ConfigValueError, match=r"keelman\.plugin\.slot\.memory\.bytes: Not a number"):
        bound_slot({"keelman.plugin.slot.memory.bytes": "4G"}, {})


def test_without_a_worker_a_mock_is_asked_where_it_is() -> None:
    assert Mock.asked_apart
    assert to_ask(Mock) is Mock
    assert (
        tasks_of(type("Named", (Mock,), {"names": ("acme.NamedConnector",)}), {})[0]["task.class"] == "acme.NamedTask"
    )
