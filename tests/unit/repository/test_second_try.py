"""The second try of `.ci/run`: which tests may have one, and its result, with a real pytest."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import ROOT

TOOL = ROOT / "tools" / "second_try.py"
SECOND_TRY = runpy.run_path(str(TOOL))
NoSecondTry = SECOND_TRY["NoSecondTry"]

TURNS = """
from pathlib import Path

def test_{name}():
    seen = Path(__file__).with_suffix(".seen")
    before = len(seen.read_text()) if seen.exists() else 0
    seen.write_text("x" * (before + 1))
    assert before >= {failures}
"""


def tree(folder: Path, **failures: int) -> Path:
    """A project with one test per file; each test fails so often before it passes."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-config\n")
    for name, count in failures.items():
        (folder / f"test_{name}.py").write_text(TURNS.format(name=name, failures=count))
    return folder


def run(folder: Path) -> tuple[int, str]:
    """The exit code and output of the run with its second try."""
    plain = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # our plugins slow the start down, and do nothing here
    command = [sys.executable, str(TOOL), sys.executable, "-m", "pytest", "-q", "."]
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_tests_that_pass_now_are_named_as_flaky(tmp_path: Path) -> None:
    code, output = run(tree(tmp_path, one=1, two=1, good=0))
    assert code == 0
    assert output.splitlines()[-1] == "FLAKY: test_one.py::test_one test_two.py::test_two"
    assert (tmp_path / "test_good.seen").read_text() == "x", "a test that passed was run again"


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    code, output = run(tree(tmp_path, good=0, bad=2))
    assert code == 1
    assert "FLAKY" not in output
    assert "failed twice" in output


def test_failures_of_an_earlier_run_are_no_failures_of_this_one(tmp_path: Path) -> None:
    folder = tree(tmp_path, one=1)
    cache = folder / ".pytest_cache/v/cache/lastfailed"
    cache.parent.mkdir(parents=True)
    cache.write_text('{"test_gone.py::test_gone": true}')
    assert run(folder)[1].splitlines()[-1] == "FLAKY: test_one.py::test_one"


def test_a_run_that_cannot_begin_gets_no_second_try(tmp_path: Path) -> None:
    folder = tree(tmp_path, one=1)
    (folder / "conftest.py").write_text("import no_such_module\n")
    code, output = run(folder)
    assert code > 1
    assert "no second try: pytest ended with" in output


def test_so_many_failures_are_not_chance() -> None:
    ten = [f"tests/unit/test_a.py::test_{number}" for number in range(10)]
    cache = "{" + ",".join(f'"{test}": true' for test in ten) + "}"
    assert SECOND_TRY["failed_tests"](1, cache) == sorted(ten)
    with pytest.raises(NoSecondTry, match="11 tests failed; at most 10"):
        SECOND_TRY["failed_tests"](1, cache.replace("}", ',"tests/unit/test_b.py": true}'))
    with pytest.raises(NoSecondTry, match="none of its tests"):
        SECOND_TRY["failed_tests"](1, "{}")
    with pytest.raises(NoSecondTry, match="ended with 137"):
        SECOND_TRY["failed_tests"](137, cache)
