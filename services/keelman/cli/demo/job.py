"""Runs the main job, step by step: check, bring up, connect, copy, verify, report."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.cli.client.gateway import connect
from keelman.cli.client.system import System
from keelman.cli.demo.attempt import Decision, Pair, checked_output, decide
from keelman.cli.demo.compare import FileComparison, verdict
from keelman.cli.demo.copying import WORKER_CLUSTER, Copy, begin_copy
from keelman.cli.demo.phases import Phases
from keelman.cli.demo.system import TiedSystem
from keelman.cli.demo.text import Facts, check_text
from keelman.cli.demo.watching import watch_copy
from keelman.cli.exits import FAILED, INTERRUPTED, OK, print_error
from keelman.cli.machine.options import UpOptions
from keelman.cli.output.words import size
from keelman.cli.waiting import Line, progress_line, until
from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError, Unavailable
from keelman.runtime.home import Home
from keelman.runtime.logs.logging import configure
from keelman.runtime.processes.lock_file import take_lock
from keelman.runtime.supervise import first_of, run_process

DATA_SET = "airports.csv"
STOP_SECONDS = 180.0


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs the job. With --once returns 0 only if OUTPUT equals INPUT byte for byte; else prints the
    reason, returns 1."""
    parser = argparse.ArgumentParser(prog="keelman demo", description="Copy a file through every part and verify it.")
    parser.add_argument("input", nargs="?", default=environment.get("INPUT", ""), help="a real data set when left out")
    parser.add_argument(
        "output", nargs="?", default=environment.get("OUTPUT", ""), help="a file under the home when left out"
    )
    truths = ("1", "true", "yes", "on")
    once = environment.get("ONCE", "").lower() in truths
    parser.add_argument("--once", action="store_true", default=once, help="end when done, and stop what it started")
    parser.add_argument("--home", type=Path, default=None, help="folder of the system [KEELMAN_HOME, else ~/.keelman]")
    free = environment.get("FREE_PORTS", "").lower() in truths
    parser.add_argument("--free-ports", action="store_true", default=free, help="take free ports for everything")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SERVICE.KEY=VALUE", help="a setting of a service"
    )
    arguments_read = parser.parse_args(arguments)
    configure("demo", level="warning")
    try:
        source = Path(arguments_read.input).expanduser() if arguments_read.input else data_set()
        options = UpOptions.of(arguments_read.home, arguments_read.set, free_ports=arguments_read.free_ports)
        job = CopyJob(
            options,
            source,
            Path(arguments_read.output).expanduser() if arguments_read.output else None,
            arguments_read.once,
        )
        code = run_process("keelman demo", job.run, grace_seconds=STOP_SECONDS)
    except KeelmanError as error:
        print_error(error.message)
        return FAILED
    if job.error is not None:
        print_error(job.error.message)
        return FAILED
    if job.equal is None:
        print_error("interrupted before OUTPUT was verified: run it again to continue where it stopped")
        return INTERRUPTED
    return OK if job.equal and code == OK else FAILED


def data_set() -> Path:
    """Returns the default INPUT: a data set of airports in the package vega-datasets. Raises InvalidArgument."""
    from importlib.util import find_spec  # noqa: PLC0415

    spec = find_spec("vega_datasets")  # not imported: an import needs pandas and a second
    for folder in (spec.submodule_search_locations or []) if spec else []:
        file = Path(folder) / "_data" / DATA_SET
        if file.is_file():
            return file
    raise InvalidArgument("INPUT: not given, and the package vega-datasets is not installed: set INPUT=path")


@dataclass(slots=True)
class CopyJob:
    """The job: its parameters, and its result. `equal` is None until OUTPUT was verified."""

    options: UpOptions
    input: Path
    output: Path | None
    once: bool
    equal: bool | None = None
    error: KeelmanError | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Runs the job until it is done, or `stop`."""
        try:
            await first_of(self._copy_alone(), stop.wait())
        except KeelmanError as error:
            self.error = error

    async def _copy_alone(self) -> None:
        phases = Phases()
        with progress_line("checking INPUT and OUTPUT") as line:
            with phases.phase("checks"):
                facts, pair = await asyncio.to_thread(self._check)
                lock = _lock(pair)
            with lock:
                decision = await asyncio.to_thread(decide, pair, facts)
                await self._copy(phases, facts, pair, decision, line)

    async def _copy(self, phases: Phases, facts: Facts, pair: Pair, decision: Decision, line: Line) -> None:
        print(f"input    {pair.input} ({facts.lines} lines, {size(facts.size)}, sha256 {facts.sha256[:16]}...)")
        print(f"output   {pair.output} ({decision.fresh or 'going on where the last run stopped'})", flush=True)
        tied = TiedSystem(self.options, phases, line.show)
        async with tied.up():
            system = await tied.serving()
            async with connect(system.gateway) as gateway:
                copy = await begin_copy(gateway, tied.ready, pair, decision, phases=phases, show=line.show)
                line.show("copying")
                line.pause()
                with phases.phase("copy"):
                    await watch_copy(gateway, copy, facts, tied.alive)
            with phases.phase("verify"):
                comparison = await asyncio.to_thread(verdict, pair.output, pair.input)
            self.equal = _print_verdict(comparison, facts, pair)
            if not self.once:
                _print_times(phases)
                _print_next(system, copy, self.options.home)
                if tied.ours:
                    print("\nrunning until Ctrl-C", flush=True)
                    await until(lambda: not tied.alive(), every=0.5)
                    raise Unavailable(f"the system ended: see {self.options.home.log('up')}")
        if self.once:
            _print_times(phases)

    def _check(self) -> tuple[Facts, Pair]:
        """Reads INPUT once and checks that OUTPUT is writable. Raises InvalidArgument."""
        facts = check_text(self.input)
        home, input_path = self.options.home, self.input.resolve()
        output = self.output
        if output is None:
            output = home.root / "copies" / input_path.name
            output.parent.mkdir(parents=True, exist_ok=True)
        return facts, Pair(home, input_path, checked_output(output, input_path))


@contextlib.contextmanager
def _lock(pair: Pair) -> Iterator[None]:
    """Holds the pair's lock. Raises FailedPrecondition while another run copies the same pair."""
    pair.record.parent.mkdir(parents=True, exist_ok=True)
    with pair.record.with_suffix(".lock").open("a+") as file:
        if take_lock(file):
            raise FailedPrecondition(f"another run copies {pair.input} to {pair.output} already")
        yield


def _print_verdict(comparison: FileComparison, facts: Facts, pair: Pair) -> bool:
    if comparison.difference is None:
        print(
            f"verified {comparison.lines} lines in order, {comparison.size} bytes, sha256 {comparison.sha256}: "
            "OUTPUT equals INPUT"
        )
        return True
    where = f"line {comparison.difference.line}, byte {comparison.difference.byte}"
    counts = f"OUTPUT has {comparison.lines} lines in {comparison.size} bytes, INPUT {facts.lines} in {facts.size}"
    print_error(f"OUTPUT {pair.output} differs from INPUT at {where}; {counts}")
    return False


def _print_times(phases: Phases) -> None:
    print("\nwhere the seconds went (they overlap)\n" + "\n".join(phases.lines()), flush=True)


def _print_next(system: System, copy: Copy, home: Home) -> None:
    there = "" if home == Home.default() else f" --home {home.root}"
    print(
        "\nlook around\n"
        f"  keelman status{there}\n"
        f"  keelman get copy-runs --ended -o wide{there}\n"
        f"  keelman describe connector {WORKER_CLUSTER}/{copy.source}{there}\n"
        f"  keelman logs -f wc {WORKER_CLUSTER}{there}\n"
        f"  curl {copy.rest_url}/connectors/{copy.sink}/status\n"
        f"  curl {system.http}/clusters/{WORKER_CLUSTER}/connectors\n"
        f"  a Kafka client at {copy.bootstrap_servers}, topic {copy.topic}\n"
        f"  a gRPC client with reflection at {system.gateway}"
    )
