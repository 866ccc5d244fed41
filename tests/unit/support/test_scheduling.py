"""A run of tests ends after a pytest worker has crashed, and all other tests are run."""

import subprocess
import sys
from pathlib import Path

from support.places import ROOT

FILES, TESTS = 9, 4


def test_a_crashed_worker_costs_one_test(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert f"2 failed, {FILES * TESTS - 2} passed" in run.stdout, run.stdout
    assert run.returncode == 1


def test_one_test_that_is_left_of_all_is_run(tmp_path: Path) -> None:
    (tmp_path / "test_0.py").write_text("import os\n\ndef test_0():\n    os.abort()\n\ndef test_1():\n    pass\n")
    run = run_in(tmp_path)
    assert "1 failed, 1 passed" in run.stdout, run.stdout


def test_a_single_test_that_is_left_of_a_file_is_run_before_the_next_file(tmp_path: Path) -> None:
    (tmp_path / "test_0.py").write_text("import os\n\ndef test_0():\n    os.abort()\n\ndef test_1():\n    pass\n")
    (tmp_path / "test_1.py").write_text("def test_0():\n    pass\n")
    run = run_in(tmp_path, workers=1)
    assert "1 failed, 2 passed" in run.stdout, run.stdout


def run_of(tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    """Runs files of tests, two of which crash their worker."""
    for number in range(FILES):
        tests = "".join(f"def test_{name}():\n    time.sleep(0.01)\n" for name in range(TESTS))
        (tmp_path / f"test_{number}.py").write_text(f"import os, time\n{tests}")
    for number in (3, 6):
        with (tmp_path / f"test_{number}.py").open("a") as file:
            file.write("def test_1():\n    os.abort()\n")
    return run_in(tmp_path)


def run_in(tmp_path: Path, workers: int = 2) -> "subprocess.CompletedProcess[str]":
    """Runs the tests of a folder with so many workers."""
    words = ["-p", "support.costs.plugin", "-p", "no:cacheprovider", "-n", str(workers), "--dist", "loadfile", "-q"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), *words, "--no-loadscope-reorder", str(tmp_path)],
        env={"PYTHONPATH": str(ROOT / "tests"), "PATH": ""}, cwd=tmp_path,
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
