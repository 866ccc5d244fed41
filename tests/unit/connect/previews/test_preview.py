"""Previews: each step of single records in readable form, and no schema is registered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keelman.connect.previews.preview import LONGEST_JSON, LONGEST_TEXT, Preview, payload, schema_text, typed
from keelman.connect.record import Record
from keelman.connect.records import Column, SourceBatch
from keelman.connect.registry.dry import NO_ID, DryRegistry
from keelman.connect.registry.interface import (
    INCOMPATIBLE,
    SUBJECT_NOT_FOUND,
    Registered,
    Registry,
    RegistryError,
    SchemaKind,
    SchemaText,
)
from keelman.connect.schema import OPTIONAL_STRING, STRING, Field, Schema

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": STRINGS, "value.converter": JSON, "value.converter.schemas.enable": "false"}
PACKAGE = "org.apache.kafka.connect.transforms."


def opened(_config: Any) -> Registry:
    raise AssertionError("no converter here has a registry")


def preview(**config: str) -> Preview:
    return Preview({key.replace("_", "."): value for key, value in config.items()}, WORKER, opened)


def test_a_dropped_record_ends_at_the_step_that_dropped_it() -> None:
    steps = preview(
        transforms="gone,never", transforms_gone_type=f"{PACKAGE}Filter", transforms_never_type=f"{PACKAGE}Filter"
    )
    trace = steps.of_source(SourceBatch("t", Column(["x"], STRING)), 0)
    assert trace["outcome"] == "dropped"
    assert [step["step"] for step in trace["steps"]] == ["read", "transform"]
    assert trace["steps"][1] == {
        "step": "transform",
        "alias": "gone",
        "class": f"{PACKAGE}Filter",
        "applied": True,
        "record": None,
    }


def test_a_failure_tells_step_stage_class_and_what_follows() -> None:
    tolerant = {"errors_tolerance": "all", "errors_deadletterqueue_topic_name": "letters"}
    cast = {"transforms": "cast", "transforms_cast_type": f"{PACKAGE}Cast$Value", "transforms_cast_spec": "int8"}
    batch = SourceBatch("t", Column(["x"], STRING))
    for more, then in (({}, "the task fails"), (tolerant, "becomes a dead letter in topic letters")):
        trace = preview(**cast, **more).of_source(batch, 0)
        assert trace["outcome"] == "failed"
        assert trace["error"]["stage"] == "TRANSFORMATION"
        assert trace["error"]["step"] == "transforms.cast"
        assert trace["error"]["class"].startswith("org.apache.kafka.connect.errors.")
        assert then in trace["error"]["then"]
        assert [step["step"] for step in trace["steps"]] == ["read"]


def test_raw_records_stay_what_they_are() -> None:
    batch = SourceBatch("t", Column([b"\xff", None]), Column([b"k", None]), headers=[[("h", b"1")], []], raw=True)
    record = preview().of_source(batch, 0)["steps"][-1]["record"]
    assert (record["value"], record["key"]) == ({"bytes": 1, "base64": "/w=="}, {"bytes": 1, "text": "k"})
    assert record["headers"] == [{"name": "h", "value": {"bytes": 1, "text": "1"}}]
    assert preview().of_source(batch, 1)["steps"][-1]["record"]["value"] is None


def test_what_is_long_is_cut_and_says_so() -> None:
    whole = payload("ä".encode() * LONGEST_TEXT)
    assert whole is not None
    assert (whole["bytes"], whole["cut"], len(whole["text"])) == (2 * LONGEST_TEXT, True, LONGEST_TEXT // 2)
    value = typed(Record("t", value="x" * LONGEST_JSON))["value"]
    assert (value["cut"], value["bytes"]) == (True, LONGEST_JSON + 2)


@pytest.mark.parametrize("value", [float("nan"), b"\xff", object(), {1: [None]}])
def test_every_value_can_be_shown(value: Any) -> None:
    json.dumps(typed(Record("t", value=value)), allow_nan=False)


def test_nesting_ends_nothing() -> None:
    value: Any = None
    for _ in range(10_000):
        value = [value]
    json.dumps(typed(Record("t", value=value)))


def test_schemas_in_one_line() -> None:
    time = Schema("int64", optional=True, name="org.acme.Time", version=2)
    listed = Schema("array", value=OPTIONAL_STRING)
    whole = Schema("struct", fields=(Field("at", time), Field("names", listed)), name="Whole")
    assert schema_text(whole) == "struct<at:int64(org.acme.Time#2)?,names:array<string?>>(Whole)"
    assert schema_text(Schema("map", key=STRING, value=whole.fields[0].schema)) == "map<string,int64(org.acme.Time#2)?>"


class Known:
    """A registry with one schema under one subject; `fits` is its verdict on others."""

    def __init__(self, *, fits: bool | None) -> None:
        self._fits = fits

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> Registered:
        if schema.text == "known":
            return Registered(schema, 7, subject, 1)
        raise RegistryError("none", SUBJECT_NOT_FOUND)

    def compatible(self, subject: str, version: str, schema: SchemaText) -> bool:
        if self._fits is None:
            raise RegistryError("none", SUBJECT_NOT_FOUND)
        return self._fits

    def register(self, *_: Any, **__: Any) -> int:
        raise AssertionError("a preview registers nothing")

    latest = schema = referenced = register


def test_a_preview_registers_no_schema() -> None:
    new, present = (SchemaText(SchemaKind.AVRO, text) for text in ("new", "known"))
    news: list[str] = []
    dry = DryRegistry(Known(fits=None), news)  # type: ignore[arg-type]
    assert dry.register("t-value", present) == 7
    assert news == []
    assert dry.register("t-value", new) == dry.register("t-value", new) == NO_ID
    assert news == ["t-value"]
    with pytest.raises(RegistryError) as refused:
        DryRegistry(Known(fits=False), news).register("u-value", new)  # type: ignore[arg-type]
    assert refused.value.code == INCOMPATIBLE
