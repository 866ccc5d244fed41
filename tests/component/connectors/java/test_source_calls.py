"""A Java source task is called as Apache Kafka Connect calls it: the same scripts, beside what was recorded of its
worker. What is different is here with its reason, and in docs/java-plugins.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recorded.java.record_source_calls import FILE
from support.java.kit import needs_java
from support.java.source_host import noted_calls

pytestmark = [pytest.mark.component, pytest.mark.timeout(400), needs_java()]

DIFFERENT = {
    "exactly once": {
        # Connect tells of them with the next record that is not dropped.
        "all are dropped": [
            *("start own step 0 next 0", "poll own d3 sees 0", "gives own 0-2"),
            *("commitRecord own 0-2 nowhere sees 0", "commit own sees 0"),
            *("poll own 2 sees 0", "gives own 3-4", "commitRecord own 3-4 there sees 2", "commit own sees 2"),
            *("poll own d1 sees 2", "gives own 5-5", "commitRecord own 5-5 nowhere sees 2", "commit own sees 2"),
            *("idle own", "commit own sees 2"),
        ],
        # A paused task has left its slot; Connect keeps it, and does not call it.
        "paused and resumed": [
            *("start own step 0 next 0", "poll own 2 sees 0", "gives own 0-1"),
            *("commitRecord own 0-1 there sees 2", "commit own sees 2", "wait1 own", "commit own sees 2"),
            *("stop own", "start own step 1 next 2", "commit own sees 2"),
            *("poll own 3 sees 2", "gives own 2-4", "commitRecord own 2-4 there sees 5", "commit own sees 5"),
            *("idle own", "commit own sees 5"),
        ],
        # Records of a transaction that its task aborts go nowhere, as those that are dropped. Connect tells of those
        # alone that a broker had before the abort.
        "its own ends: with a poll": [
            *("start own step 0 next 0", "poll own 3 sees 0", "gives own 0-2", "poll own c2 sees 0", "gives own 3-4"),
            *("commitRecord own 0-4 there sees 5", "commit own sees 5", "poll own a2 sees 5", "gives own 5-6"),
            *("commitRecord own 5-6 nowhere sees 5", "commit own sees 5", "poll own 1 sees 5", "gives own 7-7"),
            *("poll own c1 sees 5", "gives own 8-8", "commitRecord own 7-8 there sees 7", "commit own sees 7"),
            "idle own",
        ],
        "its own ends: with a record": [
            *("start own step 0 next 0", "poll own 1 sees 0", "gives own 0-0", "poll own r3 sees 0", "gives own 1-3"),
            *("commitRecord own 0-2 there sees 3", "commit own sees 3", "poll own c1 sees 3", "gives own 4-4"),
            *("commitRecord own 3-4 there sees 5", "commit own sees 5", "poll own q3 sees 5", "gives own 5-7"),
            *("commitRecord own 5-6 nowhere sees 5", "commit own sees 5", "poll own c1 sees 5", "gives own 8-8"),
            *("commitRecord own 7-8 there sees 7", "commit own sees 7", "idle own"),
        ],
    },
    "at least once": {
        # All that a task hears of comes from one thread, in order.
        "the last one is dropped": [
            *("start own step 0 next 0", "poll own t3", "gives own 0-2", "poll own 2", "gives own 3-4"),
            *("commitRecord other 0-1 there", "commitRecord other 2-2 nowhere", "commitRecord other 3-4 there"),
            "commit other",
        ],
        "all are dropped": [
            *("start own step 0 next 0", "poll own d3", "gives own 0-2", "poll own 2", "gives own 3-4"),
            *("poll own d1", "gives own 5-5"),
            *("commitRecord other 0-2 nowhere", "commitRecord other 3-4 there", "commitRecord other 5-5 nowhere"),
            "commit other",
        ],
        "no converter takes one, which is tolerated": [
            *("start own step 0 next 0", "poll own b3", "gives own 0-2", "poll own 1", "gives own 3-3"),
            *("commitRecord other 0-0 there", "commitRecord other 1-1 nowhere", "commitRecord other 2-3 there"),
            "commit other",
        ],
        # Connect commits the offset of the record before it, which is that of its whole poll: the others are lost.
        "no converter takes one": ["start own step 0 next 0", "poll own b3", "gives own 0-2", "stop own"],
        "paused and resumed": [
            *("start own step 0 next 0", "poll own 2", "gives own 0-1", "wait1 own", "stop own"),
            *("start own step 1 next 2", "poll own 3", "gives own 2-4", "commitRecord other 0-4 there"),
            "commit other",
        ],
    },
}


@pytest.mark.parametrize("guarantee", list(DIFFERENT))
def test_its_calls_are_those_of_kafka_connect(
    bootstrap: str, classes: Path, tmp_path: Path, name: str, guarantee: str
) -> None:
    once = guarantee == "exactly once"
    found = noted_calls(tmp_path, bootstrap=bootstrap, classes=str(classes), name=name, exactly_once=once)
    recorded, different = json.loads(FILE.read_text())[guarantee], DIFFERENT[guarantee]
    assert [case for case, calls in different.items() if calls == recorded[case]] == []
    assert found == {**recorded, **different}
