"""The control plane on fake time: 100 seeds of disturbances, and broken rules are found. `make faults` has 10,000."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.places import ROOT

SEEDS = 100


def simulation(*arguments: str) -> str:
    """Returns the output of a run that broke no rule."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests"), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "simulation", *arguments]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{result.stdout[-6000:]}\n{result.stderr[-2000:]}"
    return result.stdout


@pytest.mark.timeout(900)
def test_no_seed_breaks_a_rule() -> None:
    assert f"{SEEDS} seeds in" in simulation("--seeds", str(SEEDS))


def test_a_seed_is_the_same_run_in_another_process() -> None:
    item, other = (simulation("--seed", "8", "--trace").splitlines() for _ in range(2))
    assert item[:-1] == other[:-1]
    assert len(item) > 100


@pytest.mark.timeout(600)
def test_rules_that_are_broken_are_found() -> None:
    simulation("--breakages")
