"""Offsets as users type and read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keelman.cli.commands.connectors.offsets import entries_of, offset_lines
from keelman.model.errors import InvalidArgument

SINK = [
    {"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": {"kafka_offset": 42}},
    {"partition": {"kafka_topic": "lines", "kafka_partition": 1}, "offset": None},
]
SOURCE = [{"partition": {"filename": "/in"}, "offset": {"position": 7}}]


def test_a_sinks_offsets_are_typed_as_they_are_shown() -> None:
    assert offset_lines(SINK) == ["lines:0=42", "lines:1=null"]
    assert entries_of(offset_lines(SINK), "", "", None) == SINK


def test_a_sources_offsets_are_json() -> None:
    assert entries_of([], '{"filename": "/in"}', '{"position": 7}', None) == SOURCE
    assert entries_of([], '{"filename": "/in"}', "null", None) == [{**SOURCE[0], "offset": None}]
    assert offset_lines(SOURCE) == ['{"filename":"/in"}  {"position":7}']


def test_what_is_printed_as_json_can_be_set_again(tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"offsets": SOURCE}))
    assert entries_of([], "", "", file) == SOURCE


@pytest.mark.parametrize(
    "content", ["[]", '{"offsets": []}', '{"offsets": [1]}', '{"offsets": [{"partition": {}}]}', "{"]
)
def test_a_file_of_anything_else_is_refused_by_its_name(content: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    with pytest.raises(InvalidArgument, match=r"--file: .*offsets\.json"):
        entries_of([], "", "", file)
