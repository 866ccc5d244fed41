"""Lines that C libraries write on standard error: captured, or printed unchanged, and none is lost at the end."""

from __future__ import annotations

import subprocess
import sys

BEGIN = """
import os, sys, time
from keelman.runtime.logs.native_lines import NATIVE
NATIVE.begin()
taken, ticks = [], []
def take(line):
    taken.append(line)
    return "secret" in line
with NATIVE.give_to(take, lambda: ticks.append(len(taken))):
    os.write(2, b"one\\nsecret two\\nthree\\n")
    while not taken or taken[-1] != "three" or 3 not in ticks:
        time.sleep(0.01)
    print("by python", file=sys.stderr)
    os.write(2, b"no end")
"""


def ran(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_what_is_taken_is_not_printed_and_all_else_is() -> None:
    done = ran(BEGIN + "print(taken)\nos.write(2, b', and more\\nthe last\\n')\n")
    assert (done.returncode, done.stdout) == (0, "['one', 'secret two', 'three']\n"), done
    assert sorted(done.stderr.splitlines()) == ["by python", "no end, and more", "one", "the last", "three"]


def test_a_crash_leaves_its_traceback() -> None:
    done = ran(BEGIN + "import ctypes; ctypes.string_at(0)")
    assert done.returncode < 0
    assert "Fatal Python error: Segmentation fault" in done.stderr
