"""The audit: the file's number of lines and its permissions, and the events for the state service."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.gateway.access import audit
from keelman.gateway.access.audit import MAX_TEXT, REFUSED_A_SECOND, Audit
from keelman.gateway.access.audit_queue import AuditQueue
from keelman.model.errors import InvalidArgument


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_line_has_the_time_and_the_fields_and_the_file_is_closed_to_others(tmp_path: Path) -> None:
    file = tmp_path / "audit" / "gateway.jsonl"
    record = Audit(file, AuditQueue(), "gw")
    record.write(caller="ada", call="DeleteTopic 100%s", outcome="OK")
    record.close()
    ((line,),) = [lines(file)]
    assert line.keys() == {"time", "caller", "call", "outcome"}
    assert line["call"] == "DeleteTopic 100%s"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_flood_of_refused_calls_is_counted_and_hides_no_write(tmp_path: Path) -> None:
    now = 5.0
    record = Audit(tmp_path / "audit", AuditQueue(), "gw", clock=lambda: now)
    for _ in range(REFUSED_A_SECOND + 30):
        record.write(is_refused=True, caller="unknown")
    record.write(caller="ada")
    now += 1
    record.write(is_refused=True, caller="eve")
    record.close()
    entries = lines(tmp_path / "audit")
    assert [line["caller"] for line in entries] == ["unknown"] * REFUSED_A_SECOND + ["ada", "eve"]
    assert [line.get("left_out") for line in entries[-2:]] == [30, None]


def test_a_full_file_becomes_an_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "FILE_BYTES", 500)
    monkeypatch.setattr(audit, "FILES", 2)
    record = Audit(tmp_path / "audit", AuditQueue(), "gw")
    for number in range(100):
        record.write(caller=str(number))
    record.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit", "audit.1", "audit.2"]
    assert lines(tmp_path / "audit")[-1]["caller"] == "99"


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"gateway\.audit_file: .* a file that can be written"):
        Audit(tmp_path, AuditQueue(), "gw")


async def test_events_have_the_same_fields_without_a_file() -> None:
    now, queue, sent = 5.0, AuditQueue(), list[AuditEvent]()
    record = Audit(None, queue, "gw", clock=lambda: now)
    for _ in range(REFUSED_A_SECOND + 3):
        record.write(is_refused=True, caller="unknown", outcome="403")
    record.write(caller="ada", call=f"POST /{chr(0xDC80)}{'x' * 5000}", resource="orders", outcome="OK")

    async def keep(events: Sequence[AuditEvent]) -> None:
        sent.extend(events)

    async with queue.sending(keep):
        pass
    assert len({event.id for event in sent}) == len(sent) == REFUSED_A_SECOND + 1
    last = sent[-1]
    assert [(e.refused, e.caller, e.outcome, e.gateway) for e in (sent[0], last)] == [
        (True, "unknown", "403", "gw"), (False, "ada", "OK", "gw"),
    ]  # fmt: skip
    assert (last.left_out, last.resource, len(last.call)) == (3, "orders", MAX_TEXT)
    assert last.time.seconds
