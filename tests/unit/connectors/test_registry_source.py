"""Errors in a source's transaction settings and limits, in Connect's words."""

import pytest

from keelman.connect.config.info import problems
from keelman.connectors.validation.configuration import validate

BASE = {"name": "a", "connector.class": "FileStreamSource", "file": "/in", "topic": "t"}
CONVERTERS = {f"{k}.converter": "org.apache.kafka.connect.storage.StringConverter" for k in ("key", "value")}
OFF = {"exactly.once.source.support": "disabled"}


def said(config: dict[str, str], worker: dict[str, str] | None = None) -> list[tuple[str, str]]:
    whole = {**BASE, **config}
    actual_problems = problems(validate(whole, {**CONVERTERS, **(worker or {})}), whole)
    return [(error.key, error.message) for error in actual_problems]


@pytest.mark.parametrize(
    "legal",
    [
        {"exactly.once.support": "required"},
        {"exactly.once.support": "REQUESTED", "transaction.boundary": "Interval"},
        {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "0"},
        {"offsets.storage.topic": "own"},
        {"keelman.limit.records.per.second": "0.5", "keelman.limit.bytes.per.second": "1000"},
        {"keelman.park.after.ms": "-1"},
        {"keelman.bulk.slots": "64", "keelman.bulk.min.records": "1"},
    ],
)
def test_legal(legal: dict[str, str]):
    assert said(legal) == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"exactly.once.support": "maybe"}, "String must be one of (case insensitive): REQUIRED, REQUESTED"),
        ({"transaction.boundary": "never"}, "String must be one of (case insensitive): INTERVAL, POLL, CONNECTOR"),
        ({"transaction.boundary.interval.ms": "-1"}, "Value must be at least 0"),
        ({"transaction.boundary.interval.ms": "soon"}, "Not a number of type LONG"),
        ({"offsets.storage.topic": ""}, "String must be non-empty"),
        ({"keelman.limit.records.per.second": "-1.0"}, "Value must be at least 0"),
        ({"keelman.limit.bytes.per.second": "NaN"}, "Value must be a finite number, at least 0"),
        ({"keelman.limit.bytes.per.second": "Infinity"}, "Value must be a finite number, at least 0"),
        ({"keelman.limit.bytes.per.second": "fast"}, "Not a number of type DOUBLE"),
        ({"keelman.park.after.ms": "-2"}, "Value must be at least -1"),
        ({"keelman.bulk.slots": "65"}, "Value must be a whole number, at least 1 and at most 64"),
        ({"keelman.bulk.min.records": "0"}, "Value must be at least 1"),
    ],
)
def test_a_value_that_is_not_legal(config: dict[str, str], message: str):
    ((key, value),) = config.items()
    ((named, text),) = said(config)
    assert named == key
    assert text.startswith(f"Invalid value {value} for configuration {key}")
    assert text.endswith(message)


def test_a_slip_in_a_key_of_ours_is_told_with_the_nearest_and_keys_of_others_are_let_through():
    slip = "keelman.limit.record.per.second"
    meant = "keelman.limit.records.per.second"
    assert said({slip: "5"}) == [(slip, f"Unknown configuration {slip}; did you mean {meant}?")]
    assert said({"keelman.zzz": "5"}) == [("keelman.zzz", "Unknown configuration keelman.zzz")]
    assert said({"limit.record.per.second": "5", "acme.key": "x"}) == []


def test_the_connector_must_be_able_to_draw_its_boundaries():
    assert said({"transaction.boundary": "Connector"}) == [
        (
            "transaction.boundary",
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition.",
        )
    ]


def test_required_needs_the_worker_and_the_connector():
    worker = "This worker does not have exactly-once source support enabled."
    connector = "The connector does not support exactly-once semantics with the provided configuration."
    assert [text for _, text in said({"exactly.once.support": "Required"}, OFF)] == [worker]
    assert [text for _, text in said({"exactly.once.support": "required", "file": ""})] == [connector]
    both = {"exactly.once.support": "required", "file": ""}
    assert [text for _, text in said(both, {"exactly.once.source.support": "preparing"})] == [worker, connector]
    assert said({"exactly.once.support": "requested"}, OFF) == []
