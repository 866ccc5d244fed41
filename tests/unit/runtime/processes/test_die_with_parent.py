"""Keepers: all processes that a process has started end with it, wherever they have gone, and no others do."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from keelman.runtime.processes.die_with_parent import kept
from keelman.runtime.processes.process_trees import start_of
from support.eventually import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reapers are Linux's")

# Classic daemons, with a session of their own and a parent that has ended; one has a child, too.
LEAVES = """
import os, subprocess, sys, time
shell = "setsid sleep 600 > /dev/null & echo $! > one; setsid sh -c 'sleep 600 & echo $! > two; wait' > /dev/null &"
subprocess.run(["sh", "-c", shell], start_new_session=True)
while not all(os.path.exists(f) and open(f).read() for f in ("one", "two")):
    time.sleep(0.01)
"""
WAITS = "print('up', flush=True); time.sleep(600)"


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """The folder where left processes write their ids; processes left by a failed test are killed."""
    yield tmp_path
    for pid in noted(tmp_path):
        if start_of(pid) is not None:
            os.kill(pid, signal.SIGKILL)


def noted(folder: Path) -> list[int]:
    return [int((folder / name).read_text() or 0) for name in ("one", "two") if (folder / name).exists()]


def command(code: str) -> list[str]:
    return kept([sys.executable, "-c", code])


def started(folder: Path, code: str) -> subprocess.Popen[str]:
    """Starts the code and waits until it prints "up"."""
    process = subprocess.Popen(command(code), cwd=folder, stdout=subprocess.PIPE, text=True, process_group=0)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert len([pid for pid in noted(folder) if start_of(pid) is not None]) == 2
    return process


def none_runs(folder: Path) -> bool:
    pids = noted(folder)
    assert len(pids) == 2
    return all(start_of(pid) is None for pid in pids)


@pytest.mark.parametrize(
    ("end", "code"), [("sys.exit(7)", 7), ("pass", 0), ("os.abort()", -signal.SIGABRT), ("os.kill(os.getpid(), 9)", -9)]
)
def test_it_ends_as_its_command_and_leaves_nothing(left: Path, end: str, code: int) -> None:
    done = subprocess.run(command(LEAVES + end), cwd=left, timeout=60, check=False, stderr=subprocess.DEVNULL)
    assert done.returncode == code
    assert none_runs(left)


def test_what_cannot_be_started_is_told(left: Path) -> None:
    done = subprocess.run(kept([str(left / "none")]), timeout=60, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (127, f"{left / 'none'}: No such file or directory\n")


def test_who_is_told_to_end_leaves_nothing(left: Path) -> None:
    with started(left, LEAVES + "import signal; signal.signal(15, signal.SIG_IGN)\n" + WAITS) as process:
        process.terminate()
        assert process.wait(60) == -signal.SIGKILL
    assert none_runs(left)


async def test_a_killed_starter_leaves_nothing(left: Path) -> None:
    code = (
        "import subprocess, sys\nfrom keelman.runtime.processes.die_with_parent import kept\n"
        f"subprocess.run(kept([sys.executable, '-c', {LEAVES + WAITS!r}]))\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], cwd=left, stdout=subprocess.PIPE, text=True)
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "up\n"
        starter.kill()
    await eventually(lambda: none_runs(left), what="the end of all that was started")


def test_who_signals_its_own_group_does_not_hit_its_reaper(left: Path) -> None:
    code = "os.kill(0, 9)"
    assert subprocess.run(command(LEAVES + code), cwd=left, timeout=60, check=False).returncode == -9
    assert none_runs(left)


def test_strangers_and_relatives_are_left_alone(left: Path) -> None:
    sleep = ["sleep", "600"]
    with subprocess.Popen(sleep, cwd=left) as sibling, started(left, LEAVES + WAITS) as process:
        with subprocess.Popen(sleep, process_group=0) as stranger:
            process.terminate()
            process.wait(60)
            assert none_runs(left)
            assert (sibling.poll(), stranger.poll()) == (None, None)
            stranger.kill()
        sibling.kill()


async def test_what_ends_before_its_keeper_is_collected(left: Path) -> None:
    ends = "for n in range(20):\n    subprocess.run(['sh', '-c', 'setsid true &'])\n"
    with started(left, LEAVES + ends + WAITS) as process:
        reaper = psutil.Process(process.pid)

        def collected() -> bool:
            try:
                return all(child.status() != psutil.STATUS_ZOMBIE for child in reaper.children())
            except psutil.NoSuchProcess:  # it was collected just now
                return False

        try:
            await eventually(collected, what="no child is a zombie")
        finally:
            process.terminate()
