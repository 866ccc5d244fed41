"""The agent reads why slots wait from a note, which is there only while they do."""

from __future__ import annotations

import os
from pathlib import Path

from keelman.spark.reach import ShortageNote
from keelman.spark.slots.shortage import Shortage, waiting_for_cores
from keelman.workers.reach_note import ReachNote


def test_a_shortage_is_noted_with_its_figures_and_forgotten_with_its_end(tmp_path: Path) -> None:
    file, present = tmp_path / "reach.json", [waiting_for_cores("spark://m:7077", 4, 16)]
    file.write_text("{}")

    def shortage() -> Shortage | None:
        return present[0] if present else None

    note = ShortageNote(file, shortage)
    assert not file.exists(), "that of an earlier process"
    note.look()
    read = ReachNote.read(file, os.getpid())
    assert read is not None
    assert (read.reason, read.message[:13]) == ("WAITING_FOR_CORES", "4 of 16 cores")
    present[0] = waiting_for_cores("spark://m:7077", 6, 16)
    note.look()
    read = ReachNote.read(file, os.getpid())
    assert read is not None
    assert read.message.startswith("6 of 16 cores")
    present.clear()
    note.look()
    assert not file.exists()
    ShortageNote(None, shortage).look()
