"""The log lines of Java code, in keelman's log."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support.java.kit import needs_java
from support.places import with_tests

pytestmark = [pytest.mark.component, needs_java()]


def test_lines_have_logger_level_task_and_trace_and_obey_levels() -> None:
    command = [sys.executable, "-m", "support.java.logs"]
    done = subprocess.run(command, check=True, capture_output=True, timeout=300, env=with_tests())
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith(b"{")]
    results = [
        (line["logger"], line["level"], line["message"], line.get("context")) for line in lines if "logger" in line
    ]
    assert results == [
        ("acme.quiet", "info", "read 7 rows", None),
        ("acme.loud.Task", "debug", "in detail", "[lines|task-3]"),
        ("acme.loud.Task", "error", "no table", "[lines|task-3]"),
    ]
    assert lines[-1]["trace"].startswith("java.lang.IllegalStateException: gone")
    assert done.stdout.splitlines() == [b"said by itself"]
