"""Gives the tests that failed in `make test` one more try, by themselves. Only `.ci/run` calls this.

A test that passes now is flaky: its name is printed behind `FLAKY:`, and it is the first thing to mend. Nothing but
failed tests is tried again: a stage that could not run, or more failures than chance explains, is a failure.

    python tools/second_try.py make.log
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MAX_TESTS = 10
STAGES = ("unit", "component", "e2e", "chaos", "alone")
"""The targets of `make test` that run pytest: it exits with 1 when tests failed, with more for another reason."""
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")

_MAKE_ERROR = re.compile(r"^make(?:\[\d+\])?: \*\*\* (.*)$", re.MULTILINE)
_FAILED_STAGE = re.compile(rf"\[[^\]]*: ({'|'.join(STAGES)})\] Error 1$")


class NoSecondTry(Exception):
    """The failed tests are not tried again; the message says why."""


def failed_stages(log: str) -> list[str]:
    """The stages of which tests failed, from what `make --keep-going test` printed, in order.

    Raises NoSecondTry when there is none, or when anything but a test failed.
    """
    stages = []
    for error in _MAKE_ERROR.findall(log):
        stage = _FAILED_STAGE.search(error)
        if stage is None:
            raise NoSecondTry(f"not a failed test: {error}")
        stages.append(stage[1])
    if not stages:
        raise NoSecondTry("make failed without naming a stage")
    return stages


def failed_tests(cache: str) -> list[str]:
    """The ids of the tests that failed, from pytest's cache of them. Raises NoSecondTry for none, or too many."""
    tests = sorted(json.loads(cache))
    if not tests:
        raise NoSecondTry("a stage failed, but none of its tests")
    if len(tests) > MAX_TESTS:
        raise NoSecondTry(f"{len(tests)} tests failed; at most {MAX_TESTS} are tried again")
    return tests


def by_folder(tests: Sequence[str]) -> dict[str, list[str]]:
    """The files of the tests, by the folder under tests/ that has a conftest.py of its own."""
    folders: dict[str, list[str]] = {}
    for test in tests:
        file = test.partition("::")[0]
        files = folders.setdefault("/".join(file.split("/")[:2]), [])
        if file not in files:
            files.append(file)
    return folders


def passes(files: Sequence[str]) -> bool:
    """Whether the tests of these files that failed last pass now."""
    pytest = [sys.executable, "-m", "pytest", "-v", "--last-failed", "--last-failed-no-failures=none"]
    return subprocess.run([*pytest, *files], check=False).returncode == 0


def main(log: Path) -> int:
    """The exit code: 0 when all that failed passes now."""
    try:
        stages = failed_stages(log.read_text(encoding="utf-8", errors="replace"))
        tests = failed_tests(LAST_FAILED.read_text(encoding="utf-8") if LAST_FAILED.exists() else "{}")
    except NoSecondTry as error:
        print(f"== no second try: {error}", flush=True)
        return 1
    print(f"== second try of {len(tests)} failed tests ({', '.join(stages)})", flush=True)
    outcomes = [passes(files) for files in by_folder(tests).values()]
    if not all(outcomes):
        print("== failed twice, or once more:", *tests, sep="\n", flush=True)
        return 1
    print("FLAKY:", *tests, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
