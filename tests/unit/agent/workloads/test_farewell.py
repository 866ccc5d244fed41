"""When an agent makes a worker's member leave its group, and the note that the worker keeps for this."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keelman.agent.workloads.commands import MEMBER, PLUGINS, ROUTES, farewell, prepared_plugins
from keelman.agent.workloads.launcher import HURRIED, hurry
from keelman.worker.group.farewell import Note, NoteKeeper


def keeper(folder: Path) -> NoteKeeper:
    return NoteKeeper(
        folder / MEMBER, "http://w:1/", group="g", session_ms=6000, rebalance_ms=60_000, give=lambda note: None
    )


def test_one_that_died_is_bidden_farewell_until_it_was_said(tmp_path: Path) -> None:
    assert farewell(tmp_path) == ()
    assert farewell(tmp_path / "no-folder") == ()
    keep = keeper(tmp_path)
    keep("m-1", False)
    command = farewell(tmp_path)
    aside = tmp_path / f"gone-{MEMBER}"
    properties = str(tmp_path / "worker.properties")
    files = ("--properties-file", properties, "--member-file", str(aside))
    assert command == (sys.executable, "-P", "-m", "keelman.worker.group.farewell", *files)
    assert Note.read(aside) == Note("m-1", "http://w:1/", False, "g", 6000, 60_000)
    assert not (tmp_path / MEMBER).exists(), "the next worker of this folder writes its own"
    assert farewell(tmp_path) == command, "an agent that ended before the leave request"
    aside.unlink()
    assert farewell(tmp_path) == ()


def test_one_that_left_in_order_is_not(tmp_path: Path) -> None:
    keep = keeper(tmp_path)
    keep("m-1", False)
    keep("m-1", True)
    assert Note.read(tmp_path / MEMBER) == Note("m-1", "http://w:1/", True, "g", 6000, 60_000)
    keep("", False)
    assert farewell(tmp_path) == ()


def test_a_note_that_is_none_is_none(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"member":"m"}', '{"member":"m","url":"http://w:1/","leader":false}'):
        (tmp_path / MEMBER).write_text(text)
        assert Note.read(tmp_path / MEMBER) is None


@pytest.mark.parametrize("content", [None, b"[" * (1 << 16), b"{", b"7"])
def test_a_worker_cannot_have_its_agent_wait_or_end_by_what_it_puts_into_its_folder(
    tmp_path: Path, content: bytes | None
) -> None:
    keeper(tmp_path)("m-1", False)
    for name in (PLUGINS, ROUTES):
        if content is None:
            os.mkfifo(tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content)
    assert prepared_plugins(tmp_path) == set()
    assert "keelman.worker.group.farewell" in farewell(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_a_farewell_goes_before_what_else_wants_the_processors() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        hurry(process.pid)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == HURRIED
        process.communicate(b"\n")
    hurry(process.pid)  # it may have ended meanwhile
