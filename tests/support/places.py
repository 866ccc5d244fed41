"""The places of the repository's files for tests."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
TESTS = ROOT / "tests"
"""What a process needs on its PYTHONPATH to import what tests share."""
RECORDED_FOLDER = TESTS / "recorded"
"""What Apache Kafka's own programs answered, recorded."""


def with_tests() -> dict[str, str]:
    """The environment of a process that imports tests/support."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")]))}
