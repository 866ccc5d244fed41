"""A Java source task is called as Apache Kafka Connect calls it.

The same scripts run, beside the recorded calls of Connect's worker. Differences are listed here with their reasons, and
in docs/java-plugins.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recorded.java.record_source_calls import unlike
from recorded.java.source_calls_steps import GUARANTEES, IN_ONE_PROCESS
from support.java.kit import needs_java
from support.java.source_host import noted_calls

pytestmark = [pytest.mark.component, needs_java()]

DIFFERENT: dict[str, dict[str, list[str]]] = {
    "exactly once": {
        # Connect reports them with the next record that is not dropped.
        "all are dropped": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own d3 sees 0", "gives own 0-2"),
            *("commitRecord own 0-2 nowhere sees 0", "commit own sees 0"),
            *("poll own 2 sees 0", "gives own 3-4", "commitRecord own 3-4 there sees 2", "commit own sees 2"),
            *("poll own d1 sees 2", "gives own 5-5", "commitRecord own 5-5 nowhere sees 2", "commit own sees 2"),
            *("idle own", "commit own sees 2"),
        ],
    },
    "at least once": {
        # It gets the callbacks of dropped records beside its polls, too; Connect's own thread makes them between two.
        "the last one is dropped": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own t3", "gives own 0-2", "poll own 2"),
            *("gives own 3-4", "idle own", "commitRecord other 2-2 nowhere", "commitRecord other 0-1 there"),
            *("commitRecord other 3-4 there", "commit other"),
        ],
        "all are dropped": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own d3", "gives own 0-2", "poll own 2"),
            *("gives own 3-4", "poll own d1", "gives own 5-5", "idle own", "commitRecord other 0-2 nowhere"),
            *("commitRecord other 5-5 nowhere", "commitRecord other 3-4 there", "commit other"),
        ],
        "no converter takes one, which is tolerated": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own b3", "gives own 0-2", "poll own 1"),
            *("gives own 3-3", "idle own", "commitRecord other 1-1 nowhere", "commitRecord other 0-0 there"),
            *("commitRecord other 2-3 there", "commit other"),
        ],
        # Connect commits the offset of the record before it, which belongs to its whole poll: the others are lost.
        "no converter takes one": [
            *("start own task-thread-NAME-0 step 0 next 0", "poll own b3", "gives own 0-2", "commit own", "stop own"),
        ],
    },
}


@pytest.mark.parametrize("guarantee", list(DIFFERENT))
def test_its_calls_are_those_of_kafka_connect(
    bootstrap: str, classes: Path, tmp_path: Path, name: str, guarantee: str
) -> None:
    once = GUARANTEES[guarantee]
    notes = noted_calls(tmp_path, bootstrap=bootstrap, classes=str(classes), name=name, exactly_once=once)
    actual_unlike = unlike(notes, IN_ONE_PROCESS[once], exactly_once=once)
    assert actual_unlike == DIFFERENT[guarantee], json.dumps(actual_unlike, indent=1)
