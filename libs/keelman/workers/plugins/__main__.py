"""Inspects a plugin's file in a process of its own, with bounds of memory and time: a file may be malicious.

Reads the file from standard input; its name is the argument. Writes one JSON object: the `Inspection`, or the
message and metadata of the refusal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import resource
import sys

from keelman.workers.plugins.archive import ArchiveRefused
from keelman.workers.plugins.inspection import inspect

MEMORY_BYTES = 2 << 30
CPU_SECONDS = 600


def main(file_name: str) -> int:
    """Inspects standard input and writes the result. Returns 0 also for a refusal."""
    for what, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, CPU_SECONDS)):
        with contextlib.suppress(ValueError, OSError):  # lower already
            resource.setrlimit(what, (most, most))
    try:
        with open(0, "rb", closefd=False) as file:
            answer = {"found": dataclasses.asdict(inspect(file, file_name))}
    except ArchiveRefused as error:
        answer = {"refused": {"message": error.message, "metadata": error.metadata}}
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
