"""The state read from the three topics, record by record, and the exact bytes that we write."""

import json

from keelman.connect.offsets import CommittedOffsets
from keelman.model.work import Work
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_records import PAUSED, STARTED, STOPPED, RestartRequest
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.storage.offset_state import OffsetState, parsed_rows
from keelman.worker.storage.status_state import Status, StatusState, key_of, work_of


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


def test_a_connector_is_known_by_its_uid() -> None:
    identity = records.ConnectorIdentity("u-1", "r-1")
    connector_record = records.connector_record("x", {"a": "b"}, identity)
    assert connector_record[1] == b'{"properties":{"a":"b"},"keelman.uid":"u-1","keelman.request.id":"r-1"}'
    assert applied(connector_record).identities == {"x": identity}
    assert applied(connector_record).connectors == {"x": {"a": "b"}}, "that is nothing of its configuration"
    assert applied(connector_record, records.connector_record("x", {})).identities == {"x": records.NOT_KNOWN}, (
        "Connect's"
    )
    assert applied(connector_record, *records.deletion_records("x", 0)).identities == {}
    assert applied(connector_record, (connector_record[0], b"nope")).restored() == [connector_record]
    odd = (b"connector-x", b'{"properties":{},"keelman.uid":7,"keelman.request.id":null}')
    assert applied(odd).identities == {"x": records.NOT_KNOWN}


def test_tasks_apply_with_their_commit_only() -> None:
    results = [records.connector_record("x", {}), *records.task_records("x", [{"n": "0"}, {"n": "1"}])]
    assert applied(*results).work() == {Work("x")}
    state = applied(*results, records.commit_record("x", 2))
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
    entries = [*begun, records.fencing_record("x", 1)]
    assert applied(*entries).unfenced == {}
    assert applied(*entries, *made(1)).unfenced == {}, "one task after one task fences it by itself"
    assert applied(*entries, *made(2)).unfenced.keys() == {"x"}
    two = [*entries, *made(2), records.fencing_record("x", 2)]
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


def test_why_a_record_is_passed_over_is_told() -> None:
    state = applied(records.connector_record("x", {}))
    for key, value, reason in (
        ("nobody-knows", b"{}", "no record of Kafka Connect's has such a key"),
        ("", b"{}", "no record of Kafka Connect's has such a key"),
        ("session-keys", b"{}", "no record of Kafka Connect's has such a key"),
        ("connector-", b'{"properties":{}}', "its key names no connector"),
        ("commit-", b'{"tasks":1}', "its key names no connector"),
        ("target-state-", b'{"state":"STARTED"}', "its key names no connector"),
        ("connector-x", b"nope", "its value is no JSON object"),
        ("connector-x", b'{"properties":5}', 'its value has no object "properties"'),
        ("task-x-0", b"{}", 'its value has no object "properties"'),
        ("target-state-x", b'{"state":["STARTED"]}', 'its value has neither as "state.v2" nor as "state" one of'),
        ("commit-x", b'{"tasks":true}', 'its value has as "tasks" no number below 100000'),
        ("commit-x", b'{"tasks":-1}', 'its value has as "tasks" no number below 100000'),
        ("commit-x", b'{"tasks":3}', "the topic has not the configurations of all 3 tasks: they are made again"),
        ("tasks-fencing-x", b'{"task-count":100000}', 'its value has as "task-count" no number below 100000'),
        ("session-key", b'{"key":"!","creation-timestamp":1}', 'its value has no "key" in base64'),
        ("session-key", b'{"key":"YQ=="}', 'its value has no "key" in base64'),
        ("logger-cluster-", b'{"level":"INFO"}', "it has no logger"),
    ):
        problem = state.apply(key, value, 100)
        assert problem.startswith(reason), (key, value, problem)
    for key in ("task--0", "task-x", "task-x-01", "task-x-100000", "task-x-\u00b2"):
        assert state.apply(key, b'{"properties":{}}', 100).startswith("its key names no task of a connector")
    for key, value in (
        ("session-key", b'{"key":"YQ==","creation-timestamp":1}'),
        ("logger-cluster-x", b'{"level":"INFO"}'),
        ("restart-connector-x", b"{}"),
        ("commit-gone", b'{"tasks":1}'),
    ):
        assert state.apply(key, value, 100) == ""
    assert state.session_key == "YQ=="
    state.apply("session-key", None, 100)
    assert (state.session_key, state.session_key_ms) == ("", 0), "the leader makes another"


def test_tasks_that_a_compacted_topic_would_not_have() -> None:
    tasks = [*records.task_records("x", [{}]), records.commit_record("x", 1)]
    results = [records.connector_record("x", {"a": "b"}), *tasks]
    assert applied(*results).lapsing == set()
    assert applied(*results, records.connector_record("x", {"a": "b"})).lapsing == {"x"}, (
        "even when its content is the same"
    )
    assert applied(*results, (b"task-x-0", b"nope")).lapsing == {"x"}
    assert applied(*results, (b"task-x-0", None)).lapsing == {"x"}
    assert applied(*results, (b"commit-x", b"nope")).lapsing == {"x"}
    assert applied(*results, records.connector_record("x", {}), *tasks).lapsing == set()
    assert applied(*results, *records.deletion_records("x", 1)).lapsing == set()
    assert applied(*results, records.commit_record("x", 0), records.connector_record("x", {})).lapsing == set()


def test_what_was_overwritten_with_nonsense_is_put_back() -> None:
    results = [
        records.connector_record("x", {"a": "b"}),
        records.target_record("x", STOPPED),
        records.fencing_record("x", 2),
        records.connector_record("y", {}),
    ]
    keys = (b"connector-x", b"target-state-x", b"tasks-fencing-x")
    assert applied(*results, *((key, b"nope") for key in keys)).restored() == [results[0], results[1], results[2]]
    assert applied(*results, *((key, None) for key in keys)).restored() == []
    assert applied(*results, (keys[0], b"nope"), results[0]).restored() == []
    assert applied((b"connector-z", b"nope"), (b"target-state-z", b"nope")).restored() == [], (
        "its former content is unknown"
    )
    assert applied(results[0], (b"tasks-fencing-x", b"nope")).restored() == []


def test_what_deleted_connectors_left_is_found() -> None:
    """Connect's own deletion leaves task and commit records, which count again once a connector has the name again."""
    results = [*records.task_records("x", [{}, {}]), records.commit_record("x", 2)]
    state = applied(*results, (b"connector-x", None), (b"target-state-x", None), records.fencing_record("x", 2))
    assert state.leftovers() == [(b"task-x-1", None), (b"task-x-0", None), (b"commit-x", None)]
    for key, value in state.leftovers():
        state.apply(key.decode(), value, 100)
    assert state.leftovers() == []
    assert applied(records.connector_record("x", {}), *results).leftovers() == []
    shrunk = [
        records.connector_record("x", {}),
        *results,
        *records.task_records("x", [{}]),
        records.commit_record("x", 1),
    ]
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


def test_what_is_no_status_changes_none() -> None:
    state = StatusState()
    state.apply("status-task-x-0", Status("RUNNING", "w:1", 1).value())
    good: dict[str, object] = {"state": "RUNNING", "worker_id": "w:1", "generation": 1}
    for key in ("status-task-x-\u00b2", "status-task-x-" + "9" * 5000, "status-task-x", "status-connector-", "x", ""):
        assert state.apply(key, json.dumps(good).encode()) == "no record of Kafka Connect's has such a key"
    wrong: tuple[dict[str, object], ...] = (
        {"state": "DANCING"},
        {"worker_id": 7},
        {"generation": "1"},
        {"trace": {}},
        {"version": 1},
    )
    for value in (
        b"nope",
        b"[]",
        b"{}",
        b'{"generation":1e400}',
        *(json.dumps(good | fields).encode() for fields in wrong),
    ):
        assert state.apply("status-task-x-0", value).startswith("its value is no status")
    for key, value in (
        ("status-topic-t", b"{}"),
        ("status-topic-:connector-x", b"{}"),
        ("status-topic-t:connector-x", b"5"),
    ):
        assert state.apply(key, value) == "it names no connector that uses the topic"
    assert state.of("x") == (None, [(0, Status("RUNNING", "w:1", 1))])
    assert state.topics == {}


def test_what_is_no_offset_is_none() -> None:
    state = OffsetState()
    for key in (b'["x",5]', b'["x",null]', b'["x","a"]', b'["x"]', b"\xff", b"[" * 5000):
        assert state.apply(key, b"{}").startswith("its key is not [connector, {source partition}]")
    for number, value in enumerate((b"5", b"nope", b"", b"null", b"[1]")):
        assert state.apply(b'["x",{"n":%d}]' % number, value).startswith("its value is no JSON object")
    assert parsed_rows(state.of("x")) == []
    assert len(state.of("x")) == 5, "a reset deletes them too"


def test_of_one_partition_under_two_keys_the_newest_counts() -> None:
    state = OffsetState()
    for key, value in (
        (b'["x",{"a":1}]', b'{"n":1}'),
        (b'["x", {"a": 1}]', b'{"n":2}'),
        (b'["x",{"a":1}]', b'{"n":3}'),
    ):
        assert state.apply(key, value) == ""
    assert CommittedOffsets("x", state.of("x")).offset({"a": 1}) == {"n": 3}


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
