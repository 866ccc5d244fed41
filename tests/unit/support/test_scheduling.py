"""A run of tests ends after a pytest worker has crashed, and all other tests are run."""

import subprocess
import sys
from pathlib import Path

from support.places import ROOT

FILES, TESTS = 9, 4


def test_a_crashed_worker_costs_one_test(tmp_path: Path) -> None:
    for number in range(FILES):
        tests = "".join(f"def test_{name}():\n    time.sleep(0.01)\n" for name in range(TESTS))
        (tmp_path / f"test_{number}.py").write_text(f"import os, time\n{tests}")
    for number in (3, 6):
        with (tmp_path / f"test_{number}.py").open("a") as file:
            file.write("def test_1():\n    os.abort()\n")
    words = ["-p", "support.costs.plugin", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", "-q"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), *words, "--no-loadscope-reorder", str(tmp_path)],
        env={"PYTHONPATH": str(ROOT / "tests"), "PATH": ""}, cwd=tmp_path,
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert f"2 failed, {FILES * TESTS - 2} passed" in run.stdout, run.stdout
    assert run.returncode == 1
