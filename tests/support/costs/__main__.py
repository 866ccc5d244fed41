"""Shows the cost of each test file in the last `make test`, beside the costs stored in tests/durations.json.

PYTHONPATH=tests python tools/durations.py [--keep] [--all]
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys

from support.costs.costs import DEAREST, KEPT, MEASURED, Cost, Part, dearest, load, save

CHANGED_SECONDS = 2.0
"""Differences of a file that are smaller are chance."""


def main() -> int:
    """Prints the table; with --keep it becomes the base of later comparisons."""
    parser = argparse.ArgumentParser(prog="make durations", description=__doc__)
    parser.add_argument("--keep", action="store_true", help=f"writes {KEPT}, dated")
    parser.add_argument("--all", action="store_true", help=f"all files, not the {DEAREST} dearest of each part")
    options = parser.parse_args()
    measured, stored = load(MEASURED), load(KEPT)
    if not measured:
        print(f"there is no {MEASURED}: `make test` writes it", file=sys.stderr)
        return 1
    for name, part in measured.items():
        show(name, part, stored.get(name), None if options.all else DEAREST)
    if options.keep:
        machine = f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"
        save(KEPT, stored | measured, date=datetime.datetime.now(datetime.UTC).date().isoformat(), machine=machine)
        print(f"kept in {KEPT}")
    return 0


def show(name: str, part: Part, before: Part | None, most: int | None) -> None:
    """One part of `make test`: its dearest files, and the largest changes."""
    total = part.total()
    was = f" (kept: {before.seconds:.0f} s, {before.total().processor:.0f})" if before else ""
    print(f"\n{name}: {part.seconds:.0f} s, {total.processor:.0f} processor s{was}; {total.tests} tests")
    print(f"  of it set-up: {total.setup_seconds:.0f} s, {total.setup_processor:.0f} processor s")
    for line in dearest(part.files, most):
        print("  " + line)
    if before is not None:
        changes = {
            file: part.files.get(file, Cost()).processor - before.files.get(file, Cost()).processor
            for file in part.files.keys() | before.files.keys()
        }
        for file, change in sorted(changes.items(), key=lambda item: -abs(item[1]))[:DEAREST]:
            if abs(change) > CHANGED_SECONDS:
                print(f"  {change:+8.1f} processor s since it was kept: {file}")


if __name__ == "__main__":
    sys.exit(main())
