"""A Java source task is called as Apache Kafka Connect calls it: the same scripts, beside what was recorded of its
worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recorded.java.record_source_calls import FILE
from support.java.kit import needs_java
from support.java.source_host import noted_calls

pytestmark = [pytest.mark.component, pytest.mark.timeout(400), needs_java()]


@pytest.mark.parametrize("guarantee", ["exactly once", "at least once"])
def test_its_calls_are_those_of_kafka_connect(
    bootstrap: str, classes: Path, tmp_path: Path, name: str, guarantee: str
) -> None:
    once = guarantee == "exactly once"
    found = noted_calls(tmp_path, bootstrap=bootstrap, classes=str(classes), name=name, exactly_once=once)
    Path(f"/tmp/ours_{once}.json").write_text(json.dumps(found))
    recorded = json.loads(FILE.read_text())[guarantee]
    assert found == recorded
