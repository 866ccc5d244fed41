"""Watches a copy until OUTPUT is whole, and notices when it never will be."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.demo.copying import CALM_SECONDS, POLL_SECONDS, WORKER_CLUSTER, Copy
from keelman.cli.demo.text import Facts
from keelman.cli.output.words import size
from keelman.model.errors import Conflict, FailedPrecondition, NotFound, Unavailable
from keelman.model.traces import why_line
from keelman.rpc.enums import state_word

STALLED_SECONDS = 600.0  # with the start of the slots that copy
LINE_SECONDS = 2.0


async def watch_copy(gateway: Gateway, copy: Copy, facts: Facts, alive: Callable[[], bool]) -> None:
    """Shows both legs until OUTPUT has as many bytes as INPUT.

    Raises FailedPrecondition if a task failed for good or nothing moved for long, Unavailable if the system ended.
    """
    clock = asyncio.get_running_loop().time
    moved_at, best, bad_since = clock(), (-1, -1), None
    with display(facts.size) as show:
        while True:
            problem = ""
            try:
                runs = await gateway.list(kinds.COPY_RUNS, cluster=WORKER_CLUSTER, ended=True)
                done = _written(copy.output)
                source, sink = newest_run(runs, copy.source), newest_run(runs, copy.sink)
                read = max(source_position(source) or 0, done)
                show({"file -> topic": leg(read, source), "topic -> file": leg(done, sink)})
                if done >= facts.size:
                    return
                problem = await _failure(gateway, copy)
            except Unavailable as error:
                problem, done, read = error.message, *best
            now = clock()
            if (done, read) > best:
                moved_at, best = now, (done, read)
            bad_since = (bad_since or now) if problem else None
            if not alive():
                raise Unavailable("the system ended during the copy")
            if bad_since is not None and now - bad_since > CALM_SECONDS:
                raise FailedPrecondition(problem)
            if now - moved_at > STALLED_SECONDS:
                raise FailedPrecondition(f"nothing moved for {STALLED_SECONDS:.0f} s: see `keelman describe wc demo`")
            await asyncio.sleep(POLL_SECONDS)


def _written(output: Path) -> int:
    try:
        return output.stat().st_size
    except OSError:
        return 0


async def _failure(gateway: Gateway, copy: Copy) -> str:
    for name in (copy.source, copy.sink):
        try:
            connector = await gateway.get(kinds.CONNECTORS, name, cluster=WORKER_CLUSTER)
        except (NotFound, Conflict):
            continue
        parts = [(connector.state, connector.trace), *((t.state, t.trace) for t in connector.tasks)]
        for state, trace in parts:
            if state == CONNECTOR_STATE_FAILED:
                return f"connector {name} failed: {why_line(trace)}"
    return ""


@dataclass(frozen=True, slots=True)
class Leg:
    """The progress of one leg: bytes of INPUT done; records and rate of its present copy run; its state as a word."""

    done_bytes: int
    records: int
    bytes_per_second: float
    state: str


@dataclass(slots=True)
class RateMeter:
    """Computes a leg's rate over the last seconds, and the seconds left."""

    total: int
    window_seconds: float = 5.0
    _marks: list[tuple[float, int]] = field(default_factory=list)

    def rate(self, done: int, now: float) -> float:
        """Returns the bytes per second over the window; 0 while unknown."""
        self._marks.append((now, done))
        while len(self._marks) > 2 and now - self._marks[1][0] >= self.window_seconds:
            self._marks.pop(0)
        begun, first = self._marks[0]
        return max(0.0, (done - first) / (now - begun)) if now > begun else 0.0

    def seconds_left(self, done: int, rate: float) -> float | None:
        """Returns the seconds left; None while the rate is 0."""
        left = self.total - done
        if left <= 0:
            return 0.0
        return left / rate if rate > 0 else None


def newest_run(runs: Sequence[Any], connector: str) -> Any | None:
    """Returns the latest copy run of a connector."""
    mine = [r for r in runs if r.connector == connector]
    return max(mine, key=lambda r: (r.create_time.seconds, r.create_time.nanos), default=None)


def source_position(run: Any | None) -> int | None:
    """Returns a file source's committed position in bytes, as its copy run reports it; None before the first report."""
    if run is None:
        return None
    for text in run.progress.offsets.values():
        try:
            return int(json.loads(text)["position"])
        except (ValueError, KeyError, TypeError):
            continue
    return None


def leg(done: int, run: Any | None) -> Leg:
    """Returns a leg from the report of its newest copy run."""
    if run is None:
        return Leg(done, 0, 0.0, "WAITING")
    return Leg(done, int(run.progress.records), float(run.progress.bytes_per_second), state_word(run))


@contextmanager
def display(total: int) -> Iterator[Callable[[dict[str, Leg]], None]]:
    """Yields a function that shows the newest state of each leg: as bars on a terminal, else as a line every 2 s."""
    if not sys.stderr.isatty():
        yield _Lines(total).show
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:<14}"), BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=False) as progress:
        yield _Bars(total, progress).show


class _Bars:
    def __init__(self, total: int, progress: Any) -> None:
        self._total, self._progress = total, progress
        self._tasks: dict[str, Any] = {}
        self._meters: dict[str, RateMeter] = {}

    def show(self, legs: dict[str, Leg]) -> None:
        for name, progress in legs.items():
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=self._total, text="")
                self._meters[name] = RateMeter(self._total)
            text = line_of(progress, self._meters[name], time.monotonic())
            self._progress.update(self._tasks[name], completed=progress.done_bytes, text=text)


class _Lines:
    def __init__(self, total: int) -> None:
        self._total = total
        self._meters: dict[str, RateMeter] = {}
        self._printed_at = 0.0
        self._last = ""

    def show(self, legs: dict[str, Leg]) -> None:
        now = time.monotonic()
        lines = []
        for name, progress in legs.items():
            meter = self._meters.setdefault(name, RateMeter(self._total))
            lines.append(f"{name} {line_of(progress, meter, now)}")
        text = "; ".join(lines)
        done = all(leg.done_bytes >= self._total for leg in legs.values())
        if text != self._last and (done or now - self._printed_at >= LINE_SECONDS):
            print(text, file=sys.stderr, flush=True)
            self._printed_at, self._last = now, text


def line_of(progress: Leg, meter: RateMeter, now: float) -> str:
    """Returns a leg as a line for people."""
    rate = meter.rate(progress.done_bytes, now)
    left = meter.seconds_left(progress.done_bytes, rate)
    share = f"{progress.done_bytes * 100 // max(1, meter.total)}% of {size(meter.total)}"
    if left == 0.0:
        return f"{share}, all there"
    eta = "" if left is None else f", {left:.0f} s left"
    state = "" if progress.state == "RUNNING" else f" ({progress.state.lower()})"
    return f"{share}, {progress.records} records, {rate / 1e6:.1f} MB/s{eta}{state}"
