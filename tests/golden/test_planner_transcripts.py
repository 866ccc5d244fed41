"""The planner's transcripts: planner/<case>.txt holds commands ("> ..."), each with what was said after it.

A changed planner changes them: read the difference, then record it with KEELMAN_RECORD=1.
"""

import os
from pathlib import Path

import pytest

from support.planner_world import World

CASES = sorted((Path(__file__).parent / "planner").glob("*.txt"))


def transcript(text: str) -> str:
    world, lines = World(), []
    for line in text.splitlines():
        if line.startswith("> "):
            lines += [line, *(f"  {said}" for said in world.run(line.removeprefix("> ")))]
        elif line.startswith("#") or not line:
            lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.stem)
def test_the_planner_does_as_recorded(case: Path) -> None:
    text = case.read_text(encoding="utf-8")
    made = transcript(text)
    if os.environ.get("KEELMAN_RECORD"):
        case.write_text(made, encoding="utf-8")
    else:
        assert made == text


def test_there_are_cases() -> None:
    assert len(CASES) >= 6
