"""A test that stops the interpreter ends its pytest process, with the stacks of all threads."""

import subprocess
import sys
from pathlib import Path

from support.places import ROOT

# A function of a library in C that is called with the interpreter's lock, and that no signal interrupts.
HANGS = """import ctypes
import pytest

@pytest.mark.timeout(1)
def test_0():
    mutex = ctypes.create_string_buffer(64)
    ctypes.PyDLL(None).pthread_mutex_lock(mutex)
    ctypes.PyDLL(None).pthread_mutex_lock(mutex)
"""


def test_a_test_that_stops_the_interpreter_is_ended(tmp_path: Path) -> None:
    (tmp_path / "test_0.py").write_text(HANGS)
    (tmp_path / "conftest.py").write_text("from support.costs import hangs\n\nhangs.GRACE_SECONDS = 0.5\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), "-p", "support.costs.hangs", "-q", str(tmp_path)],
        env={"PYTHONPATH": str(ROOT / "tests"), "PATH": ""}, cwd=tmp_path,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert "Timeout (0:00:01.500000)!" in run.stderr
    assert 'test_0.py", line 8 in test_0' in run.stderr
