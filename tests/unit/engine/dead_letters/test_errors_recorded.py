"""Our sinks treat bad records as Kafka Connect's did (tests/recorded/worker/errors.json).

The same records pass, the same become dead letters with the same headers, and a failed task's trace begins as
Connect's.
"""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Message

from keelman.connect.bad_records.tolerance import Policy, RecordRefused
from keelman.connectors.file.appending import lines
from keelman.engine.failure import judge
from keelman.engine.producing.dead_letters import DeadLetterWriter
from keelman.engine.records.bad_records import BadRecords
from keelman.engine.sink.batch import BatchBuilder
from recorded.worker.errors_cases import CASES, STRING, Case, shown
from support.places import RECORDED_FOLDER

RECORD = json.loads((RECORDED_FOLDER / "worker" / "errors.json").read_text(encoding="utf-8"))
WORKER = {"bootstrap.servers": "none:1", "key.converter": STRING, "value.converter": STRING}


class Unasking:
    """The capabilities of a writer of files."""

    wants_keys = wants_payloads = wants_origin = False


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_connect(case: Case) -> None:
    recorded = RECORD[case.name]
    config = {"name": case.name, **case.config, "errors.deadletterqueue.topic.name": f"dead-{case.name}"}
    bad = BadRecords(case.name, 0, Policy.of(config, sink=True))
    columns = BatchBuilder(config, WORKER, bad)
    messages = [
        Message(topic=f"in-{case.name}", partition=0, offset=n, key=sent.key, value=sent.value, headers=sent.headers)
        for n, sent in enumerate(case.sent)
    ]
    if recorded["state"] == "FAILED":
        with pytest.raises(RecordRefused) as refused:
            columns.batch(messages, Unasking())  # type: ignore[arg-type]
        ours = judge(refused.value).trace.splitlines()
        assert ours[0] == recorded["trace"][0]
        assert ours[1].startswith(recorded["trace"][1])
        return
    batch, _ = columns.batch(messages, Unasking())  # type: ignore[arg-type]
    assert lines(batch.values).decode().splitlines() == recorded["lines"]
    dead = DeadLetterWriter(bad, WORKER, config)
    assert [shown(*dead.row(letter)) for letter in bad.take_letters()] == recorded["letters"]
