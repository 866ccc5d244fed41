"""Child processes: started, adopted, ended, swept, with real processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from keelman.runtime.processes import children, exit_record
from keelman.runtime.processes.children import Child, ChildRecord, Exit
from keelman.runtime.processes.process_trees import MARK, family, is_marked, start_of
from support.eventually import eventually

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
FAMILY = "import subprocess as s, sys; s.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'], {more}); "


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if is_marked(process.pid, tmp_path):
                process.kill()
                await eventually(lambda pid=process.pid: start_of(pid) is None)  # type: ignore[misc]


def start(folder: Path, script: str = SLEEP, python: tuple[str, ...] = ("-S", "-u")) -> Child:
    record = ChildRecord("w/x/0", "u", 3, 1, (sys.executable, *python, "-c", script))
    return children.start(folder, record, log=folder / "log", environment=children.own_environment(()))


def watched(child: Child) -> asyncio.Event:
    ended = asyncio.Event()
    child.watch(ended.set)
    return ended


async def until_up(folder: Path, times: int = 1) -> None:
    await eventually(lambda: (folder / "log").read_text().count("up\n") == times)


async def ends(ended: asyncio.Event) -> None:
    async with asyncio.timeout(20):
        await ended.wait()


async def test_a_child_leads_a_session_and_writes_to_its_file(folder: Path) -> None:
    (folder / "log").write_text("before\n")
    child = start(folder)
    ended = watched(child)
    await until_up(folder)
    assert os.getsid(child.pid) == child.pid
    assert child.record.log_offset == len("before\n")
    assert (folder / "log").read_text() == "before\nup\n"
    assert children.read_record(folder) == child.record
    assert psutil.Process(child.pid).cwd() == str(folder.resolve())
    child.terminate()
    await ends(ended)
    assert child.exit == Exit(-signal.SIGTERM)
    assert start_of(child.pid) is None


async def test_exit_codes_and_what_a_process_tells_of_its_end(folder: Path) -> None:
    child = start(folder, "raise SystemExit(7)")
    await ends(watched(child))
    assert child.exit == Exit(7)
    script = "from keelman.runtime.processes.exit_record import take_path, write; "
    script += "write(take_path(), 1, reason='FULL', message='no room')"
    child = start(folder, f"{script}; raise SystemExit(1)", python=())
    await ends(watched(child))
    assert child.exit == Exit(1, "FULL", "no room")
    # A later process without a record does not inherit this one.
    child = start(folder, "raise SystemExit(2)")
    await ends(watched(child))
    assert child.exit == Exit(2)


async def test_adopting_finds_the_very_process(folder: Path) -> None:
    child = start(folder)
    child.release()
    record, adopted = children.adopt(folder) or pytest.fail("no record")
    assert adopted is not None
    assert record == child.record
    ended = watched(adopted)
    adopted.kill()
    await ends(ended)
    record, adopted = children.adopt(folder) or pytest.fail("no record")
    assert record == child.record
    assert adopted is None


async def test_a_stranger_with_the_same_pid_is_neither_adopted_nor_swept(folder: Path) -> None:
    stranger = start(folder)
    ended = watched(stranger)
    assert stranger.record.start
    record = replace(stranger.record, start=stranger.record.start + "0")
    mine = folder / "mine"
    children.write_record(mine, record)
    assert children.adopt(mine) == (record, None)
    assert await children.sweep(mine, record, seen=False) == []
    assert await children.sweep(mine, record, seen=True) == []
    assert start_of(stranger.pid) == stranger.record.start
    stranger.kill()
    await ends(ended)


async def test_a_start_that_was_cut_short_is_found_by_its_mark(folder: Path) -> None:
    # The starter was killed after the process was made and before it was recorded; the child sets its title, as all our
    # services do, and this must not hide the mark.
    child = start(folder, "import setproctitle as s; s.setproctitle('keelman x'); " + SLEEP, python=())
    child.release()
    await until_up(folder)
    children.write_record(folder, replace(child.record, pid=0, start=""))
    record, adopted = children.adopt(folder) or pytest.fail("no record")
    assert adopted is not None
    assert (record.pid, record.start) == (child.pid, child.record.start)
    assert children.read_record(folder) == record
    ended = watched(adopted)
    adopted.kill()
    await ends(ended)
    # The same without a process: no process is adopted.
    children.write_record(folder, replace(record, pid=0, start=""))
    adoption = children.adopt(folder)
    assert adoption is not None
    assert adoption[1] is None


@pytest.mark.parametrize("content", [None, "", "{}", '{"name": 1}', "[]"])
async def test_no_record_that_can_be_read(folder: Path, content: str | None) -> None:
    if content is not None:
        (folder / "record.json").write_text(content)
    assert children.adopt(folder) is None


@pytest.mark.parametrize("more", ["", "start_new_session=True"])
async def test_killing_takes_the_whole_family(folder: Path, more: str) -> None:
    child = start(folder, FAMILY.format(more=more) + SLEEP)
    ended = watched(child)
    await until_up(folder)
    alive = family(child.pid)
    assert len(alive) == 2
    assert child.pid in alive
    child.kill()
    await ends(ended)
    await eventually(lambda: not any(start_of(p) for p in alive))


@pytest.mark.parametrize("seen", [True, False])
async def test_what_an_ended_child_left_is_swept(folder: Path, seen: bool) -> None:
    child = start(folder, FAMILY.format(more="") + "print('up', flush=True)")
    await ends(watched(child))
    (left,) = family(child.pid)
    assert await children.sweep(folder, child.record, seen=seen) == [left]
    assert start_of(left) is None
    assert await children.sweep(folder, child.record, seen=seen) == []


async def test_what_left_the_session_is_swept_by_its_mark(folder: Path) -> None:
    child = start(folder, FAMILY.format(more="start_new_session=True") + "print('up', flush=True)")
    await ends(watched(child))
    assert family(child.pid) == []
    (left,) = await children.sweep(folder, child.record, seen=True)
    assert start_of(left) is None


async def test_an_unseen_end_leaves_those_alone_that_carry_no_mark(folder: Path) -> None:
    child = start(folder, FAMILY.format(more="env={}") + "print('up', flush=True)")
    await ends(watched(child))
    (left,) = family(child.pid)
    assert await children.sweep(folder, child.record, seen=False) == []
    assert start_of(left) is not None
    assert await children.sweep(folder, child.record, seen=True) == [left]


async def test_without_pidfds_the_end_is_noticed_by_looking(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    child = start(folder)
    ended = watched(child)
    await until_up(folder)
    child.terminate()
    await ends(ended)
    assert child.exit == Exit(-signal.SIGTERM)


async def test_something_is_done_with_the_process_before_its_command_begins(folder: Path) -> None:
    begun: list[tuple[int, bool]] = []
    record = ChildRecord("w/x/0", "u", 3, 1, (sys.executable, "-S", "-u", "-c", "import os; " + SLEEP))
    child = children.start(
        folder, record, log=folder / "log", environment=children.own_environment(()),
        enter=lambda pid: begun.append((pid, (folder / "log").read_bytes() == b"")),
    )  # fmt: skip
    ended = watched(child)
    await until_up(folder)
    assert begun == [(child.pid, True)]
    assert os.getsid(child.pid) == child.pid
    assert psutil.Process(child.pid).cmdline()[0] == sys.executable
    assert os.readlink(f"/proc/{child.pid}/fd/0") == "/dev/null"
    child.terminate()
    await ends(ended)
    assert child.exit == Exit(-signal.SIGTERM)


async def test_a_command_whose_starter_cannot_or_is_killed_never_begins(folder: Path) -> None:
    record = ChildRecord("w/x/0", "u", 3, 1, (sys.executable, "-S", "-u", "-c", SLEEP))

    def refuse(pid: int) -> None:
        raise OSError("no such group")

    with pytest.raises(OSError, match="no such group"):
        children.start(folder, record, log=folder / "log", environment={}, enter=refuse)
    starter = os.fork()
    if not starter:
        children.start(folder, record, log=folder / "log", environment={}, enter=lambda pid: os._exit(0))
    await asyncio.to_thread(os.waitpid, starter, 0)
    await eventually(lambda: not any(is_marked(pid, folder) and start_of(pid) for pid in psutil.pids()))
    assert (folder / "log").read_bytes() == b""
    missing = replace(record, command=(str(folder / "nothing"),))
    with pytest.raises(FileNotFoundError):
        children.start(folder, missing, log=folder / "log", environment={}, enter=lambda pid: None)


async def test_a_command_that_is_not_there(folder: Path) -> None:
    record = ChildRecord("w/x/0", "u", 1, 0, (str(folder / "nothing"),))
    with pytest.raises(OSError, match="nothing"):
        children.start(folder, record, log=folder / "log", environment={})
    adopted = children.adopt(folder)
    assert adopted is not None
    assert adopted[1] is None


def test_a_childs_environment_has_no_settings_of_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEELMAN_BROKER_PORT", "1")
    monkeypatch.setenv("KEELMAN_CACHE", "/c")
    monkeypatch.setenv(exit_record.VARIABLE, "/x")
    own_environment = children.own_environment(("broker",))
    assert "KEELMAN_BROKER_PORT" not in own_environment
    assert exit_record.VARIABLE not in own_environment
    assert own_environment["KEELMAN_CACHE"] == "/c"


def test_exit_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "exit.json"
    monkeypatch.setenv(exit_record.VARIABLE, str(file))
    path = exit_record.take_path()
    assert path == file
    assert exit_record.take_path() is None
    exit_record.write(path, 3, reason="R", message="m")
    assert json.loads(file.read_text())["exit_code"] == 3
    assert exit_record.read(file, os.getpid()) == exit_record.ExitRecord(os.getpid(), 3, "R", "m")
    assert exit_record.read(file, os.getpid() + 1) is None
    exit_record.write(None, 0)
    exit_record.write(tmp_path / "exit.json" / "below", 0)  # cannot be written: only the record is lost


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_folder_of_the_same_name_in_another_container_is_another(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    environment = {**os.environ, MARK: str(folder)}
    script = 'mount -t tmpfs none "$1" && mkdir "$1/home" && echo ready && exec sleep 60'
    here = subprocess.Popen(("sleep", "60"), env=environment)
    there = subprocess.Popen(
        ("unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path)), env=environment, stdout=subprocess.PIPE
    )
    with here, there:
        try:
            assert there.stdout is not None
            assert there.stdout.readline() == b"ready\n"
            assert is_marked(here.pid, folder)
            assert not is_marked(there.pid, folder)
            folder.rmdir()
            assert is_marked(here.pid, folder), "its folder was removed"
            assert not is_marked(there.pid, folder)
        finally:
            here.kill()
            there.kill()
