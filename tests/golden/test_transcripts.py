"""Decisions as transcripts: <decider>/<case>.txt has commands ("> ..."), each followed by its output.

A changed decision changes them: read the difference, then record it with KEELMAN_RECORD=1.
"""

import importlib
import os
from collections import Counter
from pathlib import Path

import pytest

WORLDS = {"planner": 22, "assignor": 4, "restarts": 3, "slots": 3, "parking": 2}
"""The deciders, with the least number of cases that each has."""
CASES = sorted(Path(__file__).parent.glob("*/*.txt"))


def transcript(decider: str, text: str) -> str:
    module = importlib.import_module(f"support.worlds.{decider}")
    world, lines = module.World(), []
    for line in text.splitlines():
        if line.startswith("> "):
            lines += [line, *(f"  {said}" for said in world.run(line.removeprefix("> ")))]
        elif line.startswith("#") or not line:
            lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_it_decides_as_recorded(case: Path) -> None:
    text = case.read_text(encoding="utf-8")
    made = transcript(case.parent.name, text)
    if os.environ.get("KEELMAN_RECORD"):
        case.write_text(made, encoding="utf-8")
    else:
        assert made == text


def test_there_are_cases() -> None:
    found = Counter(case.parent.name for case in CASES)
    assert found.keys() == WORLDS.keys()
    assert all(found[decider] >= least for decider, least in WORLDS.items())
