"""A worker's note that its brokers are unreachable: it exists as long as they are, with the cause."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.worker import brokers_reach
from keelman.worker.brokers_reach import BrokersReach
from keelman.workers.reach_note import ReachNote
from support.eventually import eventually
from support.proxy import Proxy, Weather

pytestmark = pytest.mark.component


@pytest.fixture
async def link(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxy]:
    """The link to the broker, with a short interval of the watch."""
    for name, seconds in (("SILENT", 0.2), ("LOOK", 0.05), ("ASK", 1.0)):
        monkeypatch.setattr(brokers_reach, f"{name}_SECONDS", seconds)
    host, _, port = bootstrap.rpartition(":")
    async with Proxy(host, int(port)) as proxy:
        yield proxy


async def noted(file: Path) -> ReachNote:
    """The note, once it exists."""
    return await eventually(lambda: ReachNote.read(file, os.getpid()), what="the note is there")


@pytest.mark.parametrize("away", ["refusing", "frozen"])
async def test_brokers_that_a_worker_does_not_reach_are_noted_until_it_does(
    link: Proxy, tmp_path: Path, away: str
) -> None:
    file = tmp_path / "brokers.json"
    reach = BrokersReach(file, {"bootstrap.servers": link.address}, client_id="a-worker")
    link.refusing, link.weather = away == "refusing", Weather(frozen=away == "frozen")
    async with reach.watched():
        note = await noted(file)
        assert note.reason == "BROKERS_UNREACHABLE"
        assert f"no broker answers at {link.address}" in note.message
        link.refusing, link.weather = False, Weather()
        await eventually(lambda: not file.exists(), what="the note has gone")
        link.refusing = True
        await noted(file)
        reach.follow(time.monotonic)
        await eventually(lambda: not file.exists(), what="a member with fresh reports gets no request")
        reach.follow(lambda: 0.0)
        await noted(file)
    assert not file.exists(), "it goes with the worker"


async def test_one_answer_that_does_not_come_is_no_note(
    link: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach_notes: list[ReachNote | None] = []
    ask, noted_down = BrokersReach._asked, []

    async def once_frozen(self: BrokersReach) -> ReachNote | None:
        reach_notes.append(await ask(self))
        link.weather = Weather()
        return reach_notes[-1]

    monkeypatch.setattr(BrokersReach, "_asked", once_frozen)
    monkeypatch.setattr(BrokersReach, "_note", lambda _self, _file, problem: noted_down.append(problem))
    link.weather = Weather(frozen=True)
    async with BrokersReach(tmp_path / "brokers.json", {"bootstrap.servers": link.address}, client_id="w").watched():
        await eventually(lambda: len(reach_notes) >= 3, what="it is called again, and later at the usual interval")
    assert (reach_notes[0] is not None, reach_notes[1:3], noted_down) == (True, [None, None], [])
