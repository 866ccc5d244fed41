"""The places of the repository's files for tests."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
TESTS = ROOT / "tests"
"""The folder that a process needs on its PYTHONPATH to import tests/support."""
RECORDED_FOLDER = TESTS / "recorded"
"""Recorded answers of Apache Kafka's own programs."""


def with_tests() -> dict[str, str]:
    """The environment of a process that imports tests/support."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")]))}
