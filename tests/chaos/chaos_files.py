"""Other programs' changes of a path's files while its slots are killed."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil

from chaos.chaos_links import Strike
from chaos.chaos_paths import FileRun
from chaos.chaos_scene import Scene
from chaos.chaos_system import strike
from support.connectors import touched
from support.eventually import eventually

FILES = ("file source", "file sink")
TURNS = 4
LONGEST_BETWEEN = 0.4
THERE_SECONDS = 300.0


def appended(scene: Scene) -> None:
    """Appends another writer's line."""
    for run in _shared(scene):
        run.append_as_others()


def each(touch: Callable[[Path], None]) -> Callable[[Scene], None]:
    """Applies this to each file."""

    def do(scene: Scene) -> None:
        for run in _shared(scene):
            touch(run.file)

    return do


def touched_and_killed(touch: Callable[[Scene], None], *, apart: bool = False) -> Strike:
    """Other programs touch the files before or after a kill -9 of all slots, in an order that the seed chooses.

    With `apart` no slot writes meanwhile: lines between a copy and the truncation are lost to every reader.
    """

    async def do(scene: Scene) -> None:
        for _ in range(TURNS):
            await scene.moment()
            await eventually(lambda: _filled(scene), seconds=THERE_SECONDS, every=0.02, what="the files have lines")
            scene.mark()
            if scene.chance.random() < 0.5:
                _kill(scene)
                await scene.pause(LONGEST_BETWEEN)
                await _touch(scene, touch, apart=apart)
            else:
                await _touch(scene, touch, apart=apart)
                await scene.pause(LONGEST_BETWEEN)
                _kill(scene)

    return do


def _shared(scene: Scene) -> list[FileRun]:
    return [run for run in scene.runs if isinstance(run, FileRun)]


def _filled(scene: Scene) -> bool:
    return all(run.file.exists() and run.file.stat().st_size for run in _shared(scene))


async def _touch(scene: Scene, touch: Callable[[Scene], None], *, apart: bool) -> None:
    await eventually(lambda: _filled(scene), seconds=THERE_SECONDS, every=0.02, what="the files have lines")
    async with _stopped(scene) if apart else contextlib.nullcontext():
        touch(scene)  # at once: the feed's lines do not come in between


@contextlib.asynccontextmanager
async def _stopped(scene: Scene) -> AsyncIterator[None]:
    pids = [p.pid for p in scene.system.spark.slots()]
    struck = [pid for pid in pids if strike(signal.SIGSTOP, pid)]
    try:
        await eventually(
            lambda: not any(map(_runs, struck)), seconds=10, every=0.002, what="the slots make no progress"
        )
        yield
    finally:
        for pid in struck:
            strike(signal.SIGCONT, pid)


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE))
    except psutil.NoSuchProcess:
        return False


def _kill(scene: Scene) -> None:
    for process in scene.system.spark.slots():
        strike(signal.SIGKILL, process.pid)


STRIKES: dict[str, Strike] = {
    "others append, slot killed": touched_and_killed(appended),
    "file renamed, slot killed": touched_and_killed(each(touched.rename)),
    "file copied and truncated, slot killed": touched_and_killed(each(touched.copytruncate), apart=True),
}
