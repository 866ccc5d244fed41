"""What the three topics say, record by record, and the exact bytes that we write."""

from keelman.kafka.layout import Work
from keelman.worker.tables import config_state as records
from keelman.worker.tables.config_state import PAUSED, STARTED, STOPPED, ConfigState, RestartRequest
from keelman.worker.tables.offset_state import OffsetState, parsed_rows
from keelman.worker.tables.status_state import Status, StatusState, key_of, work_of


def applied(*written: tuple[bytes, bytes | None]) -> ConfigState:
    state = ConfigState()
    for offset, (key, value) in enumerate(written):
        state.apply(key.decode(), value, offset * 2)
    return state


def test_records_have_connects_bytes() -> None:
    assert records.connector_record("x", {"name": "x"}) == (b"connector-x", b'{"properties":{"name":"x"}}')
    assert records.commit_record("x", 2) == (b"commit-x", b'{"tasks":2}')
    assert records.target_record("x", STOPPED) == (b"target-state-x", b'{"state":"PAUSED","state.v2":"STOPPED"}')
    assert records.target_record("x", STARTED) == (b"target-state-x", b'{"state":"STARTED","state.v2":"STARTED"}')
    assert records.fencing_record("x", 3) == (b"tasks-fencing-x", b'{"task-count":3}')
    assert records.restart_record(RestartRequest("x", True, False)) == (
        b"restart-connector-x",
        b'{"include-tasks":true,"only-failed":false}',
    )
    assert records.task_records("x", [{"a": "ü\x1f\U0001f600"}]) == [
        (b"task-x-0", '{"properties":{"a":"ü\\u001F\\uD83D\\uDE00"}}'.encode())
    ]


def test_tasks_apply_with_their_commit_only() -> None:
    made = [records.connector_record("x", {}), *records.task_records("x", [{"n": "0"}, {"n": "1"}])]
    assert applied(*made).work() == {Work("x")}
    state = applied(*made, records.commit_record("x", 2))
    assert state.work() == {Work("x"), Work("x", 0), Work("x", 1)}
    assert state.task(Work("x", 1)) == {"n": "1"}
    assert state.offset == 7, "the last record's offset + 1, never the log's end"


def test_a_commit_before_its_connector_is_ignored() -> None:
    state = applied(*records.task_records("x", [{}]), records.commit_record("x", 1), records.connector_record("x", {}))
    assert state.work() == {Work("x")}


def test_a_commit_without_all_its_tasks_is_inconsistent() -> None:
    state = applied(records.connector_record("x", {}), *records.task_records("x", [{}]), records.commit_record("x", 2))
    assert state.inconsistent == {"x"}
    assert state.work() == {Work("x")}


def test_fewer_tasks_keep_the_configurations_of_those_that_stay() -> None:
    state = applied(
        records.connector_record("x", {}),
        *records.task_records("x", [{"n": "0"}, {"n": "1"}]),
        records.commit_record("x", 2),
        records.commit_record("x", 0),
    )
    assert state.tasks["x"] == ()


def test_new_tasks_are_unfenced_until_the_record_says_otherwise() -> None:
    def made(count: int) -> list[tuple[bytes, bytes | None]]:
        return [*records.task_records("x", [{}] * count), records.commit_record("x", count)]

    begun = [records.connector_record("x", {}), *made(1)]
    assert applied(*begun).unfenced.keys() == {"x"}
    one = [*begun, records.fencing_record("x", 1)]
    assert applied(*one).unfenced == {}
    assert applied(*one, *made(1)).unfenced == {}, "one task after one task fences it by itself"
    assert applied(*one, *made(2)).unfenced.keys() == {"x"}
    two = [*one, *made(2), records.fencing_record("x", 2)]
    assert applied(*two).unfenced == {}
    assert applied(*two, *made(2)).unfenced.keys() == {"x"}, "what one copied before, another may copy now"
    assert applied(*two, *made(1), *records.deletion_records("x", 1)).unfenced == {}


def test_deletion_leaves_nothing() -> None:
    state = applied(
        records.connector_record("x", {}),
        records.target_record("x", PAUSED),
        *records.task_records("x", [{}]),
        records.commit_record("x", 1),
        *records.deletion_records("x", 1),
    )
    assert (state.connectors, state.targets, state.tasks) == ({}, {}, {})


def test_names_with_dashes_and_digits_are_kept_apart() -> None:
    state = applied(
        records.connector_record("x-1", {}), *records.task_records("x-1", [{"a": "b"}]), records.commit_record("x-1", 1)
    )
    assert state.work() == {Work("x-1"), Work("x-1", 0)}


def test_what_is_unknown_or_broken_is_passed_over() -> None:
    state = applied(
        records.connector_record("x", {"a": "b"}),
        (b"nobody-knows", b"{}"),
        *((key, value) for key in (b"connector-x", b"connector-y") for value in (b"no json", b"[1]", b"{}", b"\xff")),
        (b"task-x-0", b"[]"),
        (b"task-x-\xc2\xb2", b"{}"),
        (b"task-x-99999999999", b"{}"),
        (b"commit-x", b'{"tasks":"1"}'),
        (b"session-key", b"{}"),
    )
    assert state.connectors == {"x": {"a": "b"}}
    assert state.work() == {Work("x")}
    assert state.offset == 29


def test_what_deleted_connectors_left_is_found() -> None:
    """Connect's own deletion leaves task and commit records, which come back once a connector has the name again."""
    made = [*records.task_records("x", [{}, {}]), records.commit_record("x", 2)]
    state = applied(*made, (b"connector-x", None), (b"target-state-x", None), records.fencing_record("x", 2))
    assert state.leftovers() == [(b"task-x-1", None), (b"task-x-0", None), (b"commit-x", None)]
    for key, value in state.leftovers():
        state.apply(key.decode(), value, 100)
    assert state.leftovers() == []
    assert applied(records.connector_record("x", {}), *made).leftovers() == []
    shrunk = [records.connector_record("x", {}), *made, *records.task_records("x", [{}]), records.commit_record("x", 1)]
    assert applied(*shrunk, *records.deletion_records("x", 1)).leftovers() == [(b"task-x-1", None)]


def test_older_target_states_have_no_second_field() -> None:
    state = applied(records.connector_record("x", {}), (b"target-state-x", b'{"state":"PAUSED"}'))
    assert state.target("x") == PAUSED


def test_status_bytes_and_keys() -> None:
    status = Status("RUNNING", "h:1", 4, None, "4.3.0")
    assert status.value() == (b'{"state":"RUNNING","trace":null,"worker_id":"h:1","generation":4,"version":"4.3.0"}')
    for work in (Work("a-b"), Work("a-b", 3)):
        assert work_of(key_of(work).decode()) == work


def test_safe_writes_yield_to_a_later_generation_of_another_worker() -> None:
    state = StatusState()
    state.apply("status-task-x-0", Status("RUNNING", "other:1", 7).value())
    work = Work("x", 0)
    assert not state.allows(work, Status("UNASSIGNED", "me:1", 6))
    assert not state.allows(work, Status("FAILED", "me:1", 6))
    assert state.allows(work, Status("UNASSIGNED", "me:1", 7))
    assert state.allows(work, Status("UNASSIGNED", "other:1", 6))
    assert state.allows(work, Status("RUNNING", "me:1", 6))


def test_statuses_written_before_versions_are_read() -> None:
    state = StatusState()
    state.apply("status-connector-x", b'{"state":"PAUSED","trace":null,"worker_id":"w:1","generation":1}')
    state.apply("status-task-x-1", b"broken")
    assert state.of("x") == (Status("PAUSED", "w:1", 1), [])
    assert state.without([], "x") == [Work("x")]


def test_offsets_keep_their_raw_bytes() -> None:
    state = OffsetState()
    key, value = b'["src", {"filename" : "/in"}]', b'{"position":12}'
    state.apply(key, value)
    state.apply(b"no json", b"{}")
    state.apply(b'{"a":1}', b"{}")
    assert state.of("src") == [(key, value)]
    assert parsed_rows(state.of("src")) == [({"filename": "/in"}, {"position": 12})]
    state.apply(key, None)
    assert state.of("src") == []
