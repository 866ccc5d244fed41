"""Runs one step of the set-up and prints what it does, how long it took and how much it added to a folder.

    python tools/step.py "what it does" [--into FOLDER] COMMAND [ARGUMENT ...]

The step's own output is shown where it fails, and with V=1. Nothing but the standard library is used.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Returns the command's exit code."""
    title, *command = arguments
    folder = None
    if command[0] == "--into":
        folder, command = Path(command[1]).expanduser(), command[2:]
    print(f"== {title} ...", flush=True)
    before, begun = size(folder), time.monotonic()
    shown = os.environ.get("V") == "1"
    done = subprocess.run(
        command, check=False, text=True, stdout=None if shown else subprocess.PIPE, stderr=subprocess.STDOUT
    )
    seconds = time.monotonic() - begun
    if done.returncode:
        print(f"{done.stdout or ''}\n== {title}: FAILED after {seconds:.1f} s: {' '.join(command)}", flush=True)
        return done.returncode
    grown = (size(folder) - before) / 1e6
    print(f"== {title}: {seconds:.1f} s" + (f", {grown:.0f} MB" if grown >= 1 else ""), flush=True)
    return 0


def size(folder: Path | None) -> int:
    """Bytes of all files below; a file with several names counts once."""
    if folder is None or not folder.exists():
        return 0
    files: dict[tuple[int, int], int] = {}
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(root, name))
            except OSError:  # gone meanwhile
                continue
            files[found.st_dev, found.st_ino] = found.st_size
    return sum(files.values())


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
