"""The second try of `.ci/run`: what may have one, and what comes of it, with a real make and a real pytest."""

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

MAKEFILE = f"""
test: unit component
unit component:
\t@{sys.executable} -m pytest -q tests/$@
"""
TURNS = """
from pathlib import Path

def test_{name}():
    seen = Path(__file__).with_suffix(".seen")
    before = len(seen.read_text()) if seen.exists() else 0
    seen.write_text("x" * (before + 1))
    assert before >= {failures}
"""


def tree(folder: Path, **failures: int) -> Path:
    """A project with a test in each stage, that fails so often before it passes."""
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-config\n")
    for stage, count in failures.items():
        tests = folder / "tests" / stage
        tests.mkdir(parents=True)
        (tests / f"test_{stage}.py").write_text(TURNS.format(name=stage, failures=count))
    return folder


def run(folder: Path) -> tuple[int, str]:
    """What the second try of a run of the tests ends with, and prints."""
    plain = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # ours take most of a start, and do nothing here

    def ran(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, check=False)

    first = ran("make", "--keep-going", "test")
    assert first.returncode
    (folder / "make.log").write_text(first.stdout + first.stderr)
    again = ran(sys.executable, str(TOOL), "make.log")
    return again.returncode, again.stdout


def test_tests_that_pass_now_are_named_as_flaky(tmp_path: Path) -> None:
    code, told = run(tree(tmp_path, unit=1, component=1))
    assert code == 0
    names = "tests/component/test_component.py::test_component tests/unit/test_unit.py::test_unit"
    assert told.splitlines()[-1] == f"FLAKY: {names}"


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    folder = tree(tmp_path, unit=0, component=2)
    code, told = run(folder)
    assert code == 1
    assert "FLAKY" not in told
    assert (folder / "tests/unit/test_unit.seen").read_text() == "x", "a test that passed was run again"


def test_a_stage_that_cannot_run_gets_no_second_try(tmp_path: Path) -> None:
    folder = tree(tmp_path, unit=1, component=0)
    (folder / "tests/component/conftest.py").write_text("import no_such_module\n")
    code, told = run(folder)
    assert code == 1
    assert "no second try: not a failed test" in told


@pytest.mark.parametrize(
    "log",
    [
        "make: *** [Makefile:30: .venv/.ready] Error 1\n",
        "make: *** [Makefile:72: component] Error 2\n",
        "make: *** [Makefile:72: component] Error 1\nmake: *** [Makefile:90: chaos] Error 137\n",
        "make: *** No rule to make target 'x', needed by 'test'.  Stop.\n",
        "",
    ],
)
def test_what_is_not_a_failed_test_gets_no_second_try(log: str) -> None:
    with pytest.raises(NoSecondTry):
        SECOND_TRY["failed_stages"](log)


def test_stages_are_those_of_make_test() -> None:
    makefile = (TOOL.parents[1] / "Makefile").read_text()
    for stage in SECOND_TRY["STAGES"]:
        assert f"\n{stage}:" in makefile
    log = "make: *** [Makefile:72: unit] Error 1\nmake: *** [Makefile:90: alone] Error 1\n"
    assert SECOND_TRY["failed_stages"](log) == ["unit", "alone"]


def test_so_many_failures_are_not_chance() -> None:
    ten = [f"tests/unit/test_a.py::test_{number}" for number in range(10)]
    cache = "{" + ",".join(f'"{test}": true' for test in ten) + "}"
    assert SECOND_TRY["failed_tests"](cache) == sorted(ten)
    with pytest.raises(NoSecondTry, match="11 tests failed; at most 10"):
        SECOND_TRY["failed_tests"](cache.replace("}", ',"tests/unit/test_b.py": true}'))
    with pytest.raises(NoSecondTry, match="none of its tests"):
        SECOND_TRY["failed_tests"]("{}")
