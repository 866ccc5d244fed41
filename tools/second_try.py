"""Runs pytest, and gives the tests that failed one more try, by themselves. Only `.ci/run` has `make test` call this.

A test that passes now is flaky: its name is printed behind `FLAKY:`, and it is the first thing to mend. Nothing but
failed tests is tried again: a run that broke off, or more failures than chance explains, is a failure.

    python tools/second_try.py COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MAX_TESTS = 10
TESTS_FAILED = 1
"""pytest's exit code when all was run and some tests failed; it is higher for another reason."""
LAST_FAILED = Path("v/cache/lastfailed")
"""Where pytest keeps the names of the tests that failed, in the folder of its cache."""


class NoSecondTry(Exception):
    """The failed tests are not tried again; the message says why."""


def failed_tests(code: int, cache: str) -> list[str]:
    """The ids of the tests that failed, from pytest's exit code and its cache of them.

    Raises NoSecondTry when anything but a test failed, when none did, and when too many did.
    """
    if code != TESTS_FAILED:
        raise NoSecondTry(f"pytest ended with {code}: its run broke off, or could not begin")
    tests = sorted(json.loads(cache))
    if not tests:
        raise NoSecondTry("pytest failed, but none of its tests")
    if len(tests) > MAX_TESTS:
        raise NoSecondTry(f"{len(tests)} tests failed; at most {MAX_TESTS} are tried again")
    return tests


def main(command: Sequence[str]) -> int:
    """The exit code: 0 when all passed, at once or in the second try."""
    with tempfile.TemporaryDirectory() as cache:  # of this run alone: others run beside it
        return tried_twice(command, Path(cache))


def tried_twice(command: Sequence[str], cache: Path) -> int:
    """Runs the command, and the tests that failed again, with this folder as pytest's cache; returns the exit code."""
    option = ["-o", f"cache_dir={cache}"]
    code = subprocess.run([*command, *option], check=False).returncode
    if code == 0:
        return 0
    failed = cache / LAST_FAILED
    try:
        tests = failed_tests(code, failed.read_text(encoding="utf-8") if failed.exists() else "{}")
    except NoSecondTry as error:
        print(f"== no second try: {error}", flush=True)
        return code
    print(f"== second try of {len(tests)} failed tests", flush=True)
    again = [sys.executable, "-m", "pytest", "-v", "--last-failed", "--last-failed-no-failures=none", *option]
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    if subprocess.run([*again, *files], check=False).returncode:
        print("== failed twice:", *tests, sep="\n", flush=True)
        return TESTS_FAILED
    print("FLAKY:", *tests, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
