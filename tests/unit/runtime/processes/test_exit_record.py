"""The record of a process's end, as its starter reads it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from keelman.runtime.processes.exit_record import MAX_BYTES, ExitRecord, read, write

FIELDS = {"pid": 7, "exit_code": 1, "reason": "KILLED", "message": "no"}


def test_what_a_process_writes_is_read_of_it_alone(tmp_path: Path) -> None:
    file, me = tmp_path / "exit.json", os.getpid()
    assert read(file, me) is None
    write(file, 3, reason="REFUSED", message="why")
    assert read(file, me) == ExitRecord(me, 3, "REFUSED", "why")
    assert read(file, me + 1) is None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"7", b"\xff", b"[" * MAX_BYTES, {"pid": 7}, FIELDS | {"pid": float("inf")},
        FIELDS | {"exit_code": 1 << 40}, FIELDS | {"exit_code": [1]}, FIELDS | {"message": "x" * MAX_BYTES},
    ],
)  # fmt: skip
def test_what_is_no_record_says_nothing(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "exit.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    assert read(file, 7) is None


def test_a_process_cannot_have_its_starter_read_elsewhere_or_wait(tmp_path: Path) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / "exit.json"
    write(elsewhere, 3)
    file.symlink_to(elsewhere)
    assert read(file, os.getpid()) is None
    file.unlink()
    os.mkfifo(file)
    assert read(file, os.getpid()) is None
