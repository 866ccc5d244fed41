"""How a slot's process ended and in which method, as its reaper leaves it for the Spark service."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keelman.connect import contract
from keelman.connect.contract import WRITE
from keelman.connect.expected import WrongAnswer
from keelman.engine.slot.ending import FOLDER, LastCall, end_of, how_ended

SLOT = """
import ctypes, os, signal, sys
from keelman.connect import contract
from keelman.engine.slot import ending
from keelman.engine.slot.daemon import keep_children

class SeaReader:
    def read(self):
        exec(sys.argv[1])

keep_children()
if reaper := os.fork():
    os.waitpid(reaper, 0)
else:
    print(os.getpid(), flush=True)
    ending.note_calls()
    contract.READ.of(SeaReader().read)
    os._exit(0)
"""


def ended(folder: Path, way: str) -> tuple[str, str]:
    """Ends a slot in this way; returns the notes of its end as read by a first and a second call."""
    command = [sys.executable, "-c", SLOT, way]
    environment = {**os.environ, FOLDER: str(folder)}
    run = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert run.stdout, run.stderr
    pid = int(run.stdout)
    return end_of(folder, pid), end_of(folder, pid)


@pytest.mark.skipif(sys.platform != "linux", reason="slots have reapers on Linux")
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("os._exit(9)", "exited with code 9 in SeaReader.read"),
        ("os._exit(0)", "exited with code 0 in SeaReader.read"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL in SeaReader.read"),
        ("ctypes.string_at(0)", "was killed by SIGSEGV in SeaReader.read"),
        ("None", ""),
    ],
)
def test_a_slot_that_dies_leaves_how_and_where(tmp_path: Path, way: str, message: str) -> None:
    assert ended(tmp_path, way) == (message, "")
    assert list(tmp_path.iterdir()) == []


def test_ends_in_words() -> None:
    assert how_ended(1, "") == "exited with code 1"
    assert how_ended(-40, "") == "was killed by signal 40"


def test_the_last_call_is_noted_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    last, seen = LastCall(), []
    monkeypatch.setattr(contract, "_note", last.note)

    class LakeWriter:
        def write(self, answer: object) -> object:
            seen.append(last.method)
            return answer

    WRITE.of(LakeWriter().write, None)
    assert (seen, last.method) == (["test_the_last_call_is_noted_while_it_lasts.<locals>.LakeWriter.write"], "")
    with pytest.raises(WrongAnswer):
        WRITE.of(LakeWriter().write, (item for item in ()))
    assert last.method == ""
    last.note("n" * 1000)
    assert last.method == "n" * 256
