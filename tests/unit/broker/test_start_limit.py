"""The time that a broker's start may take."""

from __future__ import annotations

from pathlib import Path

from keelman.broker.start_limit import MOST_SECONDS, StartLimit


def test_each_start_that_was_too_slow_doubles_the_next_limit(tmp_path: Path) -> None:
    limit = StartLimit(tmp_path / "start_seconds", 90.0)
    assert limit.seconds == 90
    assert [limit.note_slow() for _ in range(3)] == [180, 360, 720]
    assert StartLimit(tmp_path / "start_seconds", 90.0).seconds == 720, "it outlives the process"
    assert StartLimit(tmp_path / "start_seconds", 1000.0).seconds == 1000, "never less than the setting"
    assert [limit.note_slow() for _ in range(4)][-1] == MOST_SECONDS
    limit.note_ready()
    limit.note_ready()
    assert limit.seconds == 90


def test_a_file_with_other_content_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "start_seconds"
    for content in ("", "soon", "nan"):
        file.write_text(content)
        assert StartLimit(file, 90.0).seconds == 90
