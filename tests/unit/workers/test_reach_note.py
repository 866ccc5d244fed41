"""The note of a worker with unreachable brokers, as its agent reads it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from keelman.workers.reach_note import MAX_BYTES, MAX_MESSAGE, ReachNote

NOTE = ReachNote(7, "BROKERS_UNREACHABLE", "no broker answers at b:1")


def test_what_a_worker_writes_is_read_of_its_process_alone(tmp_path: Path) -> None:
    file = tmp_path / "brokers.json"
    assert ReachNote.read(file, 7) is None
    NOTE.write(file)
    assert ReachNote.read(file, 7) == NOTE
    assert ReachNote.read(file, 8) is None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"7", b"\xff", json.dumps({"pid": 7, "reason": "BROKERS_REFUSE"}),
        json.dumps({"pid": 7, "reason": "KILLED", "message": "no"}),
        json.dumps({"pid": [7], "reason": "BROKERS_REFUSE", "message": "no"}),
        json.dumps({"pid": 7, "reason": "BROKERS_REFUSE", "message": "x" * MAX_BYTES}),
        b'{"pid": 1e999, "reason": "BROKERS_REFUSE", "message": "no"}', b"[" * MAX_BYTES,
    ],
)  # fmt: skip
def test_what_is_no_note_says_nothing(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "brokers.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert ReachNote.read(file, 7) is None


def test_a_worker_cannot_have_its_agent_read_elsewhere_wait_or_keep_much(tmp_path: Path) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / "brokers.json"
    NOTE.write(elsewhere)
    file.symlink_to(elsewhere)
    assert ReachNote.read(file, 7) is None
    file.unlink()
    os.mkfifo(file)
    assert ReachNote.read(file, 7) is None
    file.unlink()
    ReachNote(7, "BROKERS_REFUSE", "x" * 10_000).write(file)
    note = ReachNote.read(file, 7)
    assert note is not None
    assert len(note.message) == MAX_MESSAGE
