"""Checks of the files that parked tasks wait for: which changes wake a task, and that it wakes once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from keelman.connect.watches import FileWatch
from keelman.runtime.supervise import Siblings
from keelman.worker.parking import file_watches
from keelman.worker.parking.file_watches import FileWatches, WatchedFile
from support.eventually import eventually


def watch(path: Path) -> FileWatch:
    stat = path.stat()
    return FileWatch(str(path), stat.st_size, stat.st_ino, stat.st_mtime_ns)


def longer(path: Path) -> None:
    with path.open("a") as file:
        file.write("more")


def another(path: Path) -> None:
    beside = path.with_name("beside")
    beside.write_text(path.read_text())
    beside.rename(path)


CHANGES: dict[str, Callable[[Path], None]] = {
    "longer": longer,
    "cut": lambda path: path.write_text("o"),
    "rewritten": lambda path: path.write_text("two"),
    "another": another,
    "gone": Path.unlink,
}


@pytest.mark.parametrize("calm_seconds", [30.0, 0.0])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_file_that_changes_wakes_its_task_once(
    change: str, calm_seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watches, "CALM_SECONDS", calm_seconds)
    changes, stays = tmp_path / "changes", tmp_path / "stays"
    for path in (changes, stays):
        path.write_text("one")
    woken: list[str] = []
    watches = FileWatches()
    async with Siblings() as siblings:
        siblings.start(watches.run())
        for path in (changes, stays):
            watches.add(WatchedFile(watch(path), lambda name=path.name: woken.append(name)))  # type: ignore[misc]
        await asyncio.sleep(0)
        CHANGES[change](changes)
        await eventually(lambda: bool(woken), seconds=30, what="it wakes")
        longer(stays)
        await eventually(lambda: len(woken) == 2, seconds=30, what="the other wakes")
    assert woken == ["changes", "stays"]
    assert len(watches) == 0
