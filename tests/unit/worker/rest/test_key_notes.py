"""The worker's notes on a configuration's keys, in addition to Connect's own answers."""

import json

import pytest
from structlog.testing import CapturingLogger

from keelman.connect.config.info import ConfigError
from keelman.connectors.file.source import FileStreamSource
from keelman.worker.rest import key_notes
from keelman.worker.rest.key_notes import HEADER, KeyNotes, problem_header, text_of
from keelman.workers.rest.problem_keys import PROBLEMS

SLIP = {"name": "x", "connector.class": "FileStreamSource", "topic": "t", "fiel": "/in"}
NOTE = "fiel: unknown, did you mean file?"
REGEX = ConfigError("transforms.mask.regex", None, "Invalid value [ for configuration regex: Invalid regex: Unclosed")
NAMED = ConfigError("tasks.max", None, "Invalid value 0 for configuration tasks.max: Value must be at least 1")


async def test_unknown_keys_are_in_the_log_and_in_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = CapturingLogger()
    monkeypatch.setattr(key_notes, "log", logged)
    notes = KeyNotes({})
    assert json.loads((await notes.header(SLIP))[HEADER]) == [NOTE]
    await notes.log("x", SLIP)
    ((_, event, values),) = logged.calls
    assert (event, values) == (("connector_keys_unknown",), {"connector": "x", "keys": NOTE})
    well = {**SLIP, "file": SLIP["fiel"]}
    del well["fiel"]
    assert await notes.header(well) == {}
    await notes.log("x", well)
    assert len(logged.calls) == 1


async def test_a_class_is_asked_once_for_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = KeyNotes({})
    assert await notes.of(SLIP) == [NOTE]
    monkeypatch.setattr(FileStreamSource, "config_def", None)
    assert await notes.of(dict(SLIP)) == [NOTE]
    assert await notes.of({**SLIP, "name": "y"}) == ()  # without definitions the class has no notes


async def test_a_class_that_is_not_there_has_no_notes() -> None:
    assert await KeyNotes({}).of({"connector.class": "com.acme.Nowhere", "fiel": "x"}) == ()


async def test_a_header_is_of_a_size_that_servers_take() -> None:
    (value,) = (await KeyNotes({}).header({**SLIP, **{f"nothing.{n}.\u00e4": "x" for n in range(200)}})).values()
    assert len(value) < 4_100
    assert value.isascii()
    assert json.loads(value)[0] == NOTE


def test_a_refusal_names_the_whole_key() -> None:
    assert text_of(REGEX) == f"transforms.mask.regex: {REGEX.message}"
    assert text_of(NAMED) == NAMED.message
    secret = ConfigError("db.password", None, "Invalid value hunter2 for configuration db.password")
    assert text_of(secret) == "db.password: its value is refused"
    assert json.loads(problem_header([REGEX, NAMED])[PROBLEMS]) == [[REGEX.key, REGEX.message]]
    assert problem_header([NAMED]) == {}
