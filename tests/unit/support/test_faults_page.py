"""The page of faults: results of this run, and earlier results."""

from typing import Any

from chaos.faults_table import page


def row(fault: str, path: str = "mirror", seed: int = 1, *, lost: int = 0) -> dict[str, Any]:
    counts = dict.fromkeys(("duplicated", "torn", "out_of_order", "foreign", "stuck", "offsets"), 0)
    row = {"clean": not lost, "told": f"lost {lost}", "date": "2026-11-28", "standstill_seconds": 1.0}
    return {"path": path, "fault": fault, "seed": seed, "records": 100, "lost": lost, **counts, **row}


def test_lines_of_what_was_not_run_again_stay() -> None:
    former = page([row("slot killed"), row("slot killed", seed=2), row("worker killed", lost=3)], [])
    assert "Runs: 3. Not clean: 1." in former
    now = page([row("broker killed")], [], former)
    assert "Runs: 4. Not clean: 1." in now
    for start in (
        "| mirror | slot killed | 2 | 200 |",
        "| mirror | worker killed | 1 |",
        "| mirror | broker killed | 1 |",
    ):
        assert f"\n{start}" in now
    assert "\n- mirror, worker killed, seed 1: lost 3\n" in now


def test_a_run_takes_the_place_of_the_one_before() -> None:
    former = page([row("worker killed", lost=3), row("slot killed")], [])
    now = page([row("worker killed")], [], former)
    assert "Runs: 2. Not clean: 0." in now
    assert "## Not clean" not in now
