"""What a pytest process leaves behind ends with it, and nothing else does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.costs import leftovers
from support.places import with_tests
from support.waiting import until

PARENT = """
import subprocess, sys, time
from support.costs.leftovers import guard
guard(sys.argv[1])
left = subprocess.Popen(["sleep", "600"], env={"KEELMAN_HOME": f"{sys.argv[1]}/home"}, start_new_session=True)
print(left.pid, flush=True)
time.sleep(600)
"""


def test_processes_of_its_folder_end_with_a_killed_parent(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PARENT, str(tmp_path / "base")]
    other = subprocess.Popen(["sleep", "600"], env={"KEELMAN_HOME": str(tmp_path / "base2")})
    try:
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=with_tests()) as parent:
            assert parent.stdout is not None
            left = Path("/proc", parent.stdout.readline().strip())
            assert left.exists()
            parent.kill()
        until_gone(left)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def until_gone(process: Path) -> None:
    def gone() -> bool:
        try:
            return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    until(gone, "it is killed")


def test_the_guard_of_this_process_waits() -> None:
    assert all(guard.poll() is None for guard in leftovers._GUARDS)
