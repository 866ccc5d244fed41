"""`make simulation`: many seeds on all processors; for a seed that breaks a rule it prints how to repeat it."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from simulation.breakages import BREAKAGES
from simulation.run import Result, Template, prepare, simulate

BREAKAGE_SEEDS = 40
PROGRESS_SEEDS = 500
REPLAY = "PYTHONHASHSEED=0 PYTHONPATH=tests .venv/bin/python -m simulation --seed {seed} --trace"


def main(arguments: list[str]) -> int:
    """Runs seeds; returns 1 if any of them broke a rule."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="so many seeds, from --first on")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--trace", action="store_true", help="print all that happened")
    parser.add_argument(
        "--breakages", nargs="?", const="", help="break rules of keelman, or this one, and see each found"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"  # gives sets of names the same order in each run
        os.execv(sys.executable, [sys.executable, "-m", "simulation", *arguments])
    seeds = range(args.first, args.first + args.seeds) if args.seed is None else [args.seed]
    with tempfile.TemporaryDirectory(prefix="keelman-simulation-") as folder:
        template = prepare(Path(folder))
        if args.breakages is not None:
            return _find_breakages(template, args.processes, args.breakages)
        begun, counts, broken = time.monotonic(), Counter[str](), 0
        if args.seed is not None:
            results = iter([simulate(args.seed, template)])
        else:
            # A process for each seed, so that each simulation's memory is freed.
            pool = multiprocessing.get_context("fork").Pool(args.processes, maxtasksperchild=1)
            results = pool.imap_unordered(partial(_short, template=template), seeds)
        for number, result in enumerate(results, 1):
            counts.update(result.counts)
            counts["seconds"] += int(result.seconds)
            broken += bool(result.broken)
            _print(result, trace=args.trace)
            if number % PROGRESS_SEEDS == 0 and number < len(seeds):
                print(f"{number} of {len(seeds)} seeds, {broken} broke a rule", flush=True)
    took = time.monotonic() - begun
    print(f"{len(seeds)} seeds in {took:.1f} s, {broken} broke a rule; {dict(sorted(counts.items()))}")
    return 1 if broken else 0


def _find_breakages(template: Template, processes: int, only: str) -> int:
    """Runs seeds with each rule broken until the violation is found; returns 1 if one is not found."""
    missed = 0
    pool = multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1)
    for name, breakage in BREAKAGES.items():
        if only not in ("", name):
            continue
        result = None
        tries = [[breakage.seed]] + [list(range(n, n + processes)) for n in range(1, BREAKAGE_SEEDS, processes)]
        for seeds in tries:
            results = pool.map(partial(_broken, name=name, template=template), seeds, 1)
            every = [(result.seed, item) for result in results for item in result.broken]
            result = next((item for item in every if item[1].rule == breakage.rule), None)
            if result is not None:
                print(f"{name}: seed {result[0]} finds it: {result[1]}", flush=True)
                break
        if result is None:
            print(f"{name}: not found by {BREAKAGE_SEEDS} seeds", flush=True)
            missed += 1
    return 1 if missed else 0


def _broken(seed: int, name: str, template: Template) -> Result:
    BREAKAGES[name].apply()
    return _short(seed, template)


def _short(seed: int, template: Template) -> Result:
    """A result that is cheap to send."""
    actual_simulate = simulate(seed, template)
    actual_simulate.trace = actual_simulate.trace[-1:]
    return actual_simulate


def _print(result: Result, *, trace: bool) -> None:
    if trace:
        for at, what, words in result.trace:
            print(f"{at:9.3f}  {what:14} {words}")
        print(f"digest {result.digest}")
    if not result.broken:
        return
    print(f"seed {result.seed} ({result.size}):")
    for item in result.broken[:5]:
        print(f"  {item}")
    print(f"  again: {REPLAY.format(seed=result.seed)}", flush=True)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # without cleaning up after the simulated processes
