"""Where records fail: the stages of a copy, and records for which a reader could not make a payload. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Format = Literal["bytes", "json", "text"]
"""The form of a dead letter's key or value: its original bytes; JsonConverter's schema and payload, if a source had not
made bytes yet, also for nulls with a schema; or its text in Java, if even that cannot be made."""
StageName = Literal[
    "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER", "TRANSFORMATION", "TASK_PUT", "KAFKA_PRODUCE"
]
CONVERTER_STAGES: Mapping[str, StageName] = {
    "key": "KEY_CONVERTER",
    "value": "VALUE_CONVERTER",
    "header": "HEADER_CONVERTER",
}
TRANSFORMATION: StageName = "TRANSFORMATION"


@dataclass(frozen=True, slots=True)
class Stage:
    """A place where a record can fail: the stage's name in Connect, the step's full Java class, and both for people."""

    name: StageName
    class_name: str
    text: str


def converter_stage(role: str, class_name: str) -> Stage:
    """Returns the stage of a converter; `role` is key, value or header."""
    return Stage(CONVERTER_STAGES[role], class_name, f"{role} converter {simple(class_name)}")


def transform_stage(alias: str, class_name: str) -> Stage:
    """Returns the stage of a transform under its alias."""
    return Stage(TRANSFORMATION, class_name, f"transform {alias}: {simple(class_name)}")


def simple(class_name: str) -> str:
    """Returns a Java class without its package: `MaskField$Value`."""
    return class_name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """The stage and cause of its failure, and the formats of its key and value in its batch."""

    stage: Stage
    error: Exception
    key_format: Format = "json"
    value_format: Format = "json"
