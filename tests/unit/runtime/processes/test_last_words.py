"""A command that runs after its process has ended without revoking it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.eventually import eventually

# Arms the command, passes the lines to it, and waits or ends as its first argument tells.
LIVES = """
import os, sys, time
from keelman.runtime.processes.last_words import LastWords
writes = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"
words = LastWords([sys.executable, "-c", writes, sys.argv[2]])
for line in sys.argv[3:]:
    words.change(line.encode())
if sys.argv[1] == "waits":
    print("up", flush=True)
    time.sleep(600)
words.close()
"""


def started(way: str, file: Path, *lines: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", LIVES, way, str(file), *lines]
    return subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_what_was_given_last_is_said_also_when_the_whole_group_is_killed(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "said"
    with started("waits", file, "first", "", "last") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        os.killpg(process.pid, number)
    await eventually(lambda: file.read_bytes() == b"last\n", seconds=60)


async def test_who_ends_without_taking_it_back_has_it_said(tmp_path: Path) -> None:
    file = tmp_path / "said"
    with started("ends", file, "last") as process:
        assert process.wait(60) == 0
    await eventually(lambda: file.read_bytes() == b"last\n", seconds=60)


def test_what_was_taken_back_is_not_said(tmp_path: Path) -> None:
    file = tmp_path / "said"
    with started("ends", file, "first", "") as process:
        assert process.wait(60) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b"", "the started process has ended too: the pipe has no holder"
    assert not file.exists()
