"""Whether a repeated request has been done before, as the config topic tells."""

import pytest

from keelman.worker.storage import config_records as records
from keelman.worker.storage import recent
from keelman.worker.storage.config_records import PAUSED, STARTED, RestartRequest
from keelman.worker.storage.config_state import CONFIG, DELETE, RESTART, ConfigState


def applied(*written: tuple[bytes, bytes | None]) -> ConfigState:
    state = ConfigState()
    for offset, (key, value) in enumerate(written):
        state.apply(key.decode(), value, offset * 2)
    return state


def test_what_a_repeated_request_has_done_before() -> None:
    connector_record, gone = records.connector_record("x", {"a": "b"}), (b"connector-x", None)
    state = applied(connector_record)
    assert state.has_since("x", {"a": "b"}, 0)
    assert not state.has_since("x", {"a": "b"}, 1), "it was there when the request came"
    assert not state.has_since("x", {"a": "c"}, 0)
    assert not state.has_since("x", {"a": "b"}, None), "it is done for the first time"
    assert not state.deleted.since("x", 0)
    again = applied(connector_record, gone, connector_record)
    assert again.deleted.since("x", 2), "a resource made since is another one"
    assert not again.deleted.since("x", 3)
    assert again.has_since("x", {"a": "b"}, 4)
    whole, half = RestartRequest("x", True, False), RestartRequest("x", False, False)
    state = applied(connector_record, records.restart_record(whole))
    assert state.restarted.since(whole, 2)
    assert not state.restarted.since(whole, 3), "another caller requested it before"
    assert not state.restarted.since(whole, None)
    assert not state.restarted.since(half, 2)


def test_only_the_last_written_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST", 2)
    state = applied(*(records.connector_record(name, {}) for name in ("x", "y", "x", "z")))
    assert [name for name in "xyz" if state.has_since(name, {}, 0)] == ["x", "z"]


def test_a_request_with_an_id_of_its_clients_is_known_by_what_it_wrote() -> None:
    connector_record, gone = records.connector_record("x", {"a": "b"}, written_by="r-1"), (b"connector-x", None)
    paused = records.target_record("x", PAUSED, written_by="r-2")
    again = records.restart_record(RestartRequest("x", True, False), written_by="r-3")
    state = applied(connector_record, paused, again)
    assert state.is_answered(CONFIG, "x", "r-1")
    assert state.is_answered(PAUSED, "x", "r-2")
    assert state.is_answered(RESTART, "x", "r-3")
    assert not state.is_answered(STARTED, "x", "r-2"), "it requested something else"
    assert not state.is_answered(CONFIG, "y", "r-1")
    assert not state.is_answered(DELETE, "x", "r-4")
    assert not state.is_answered(CONFIG, "x", "")
    deleting = records.connector_record("x", {"a": "b"}, deleted_by="r-4")
    assert not applied(connector_record, deleting).is_answered(DELETE, "x", "r-4"), "its tombstone was never written"
    assert applied(connector_record, deleting, gone).is_answered(DELETE, "x", "r-4")
    assert not applied(connector_record, deleting, connector_record, gone).is_answered(DELETE, "x", "r-4"), (
        "another has deleted it"
    )
