"""Live progress of the two legs of a copy, file -> topic and topic -> file, from committed offsets and copy runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from keelman.cli.output.columns import run_state, size


@dataclass(frozen=True, slots=True)
class Leg:
    """How far one leg is: bytes of INPUT done of all; records of its present copy run; a word on its state."""

    done_bytes: int
    records: int
    bytes_per_second: float
    state: str


@dataclass(slots=True)
class Meter:
    """Turns what is seen of a leg into a rate over the last seconds and the seconds left."""

    total: int
    window_seconds: float = 5.0
    _marks: list[tuple[float, int]] = field(default_factory=list)

    def rate(self, done: int, now: float) -> float:
        """Bytes a second over the window; 0 while nothing is known."""
        self._marks.append((now, done))
        while len(self._marks) > 2 and now - self._marks[1][0] >= self.window_seconds:
            self._marks.pop(0)
        begun, first = self._marks[0]
        return max(0.0, (done - first) / (now - begun)) if now > begun else 0.0

    def seconds_left(self, done: int, rate: float) -> float | None:
        """None when it cannot be told."""
        left = self.total - done
        if left <= 0:
            return 0.0
        return left / rate if rate > 0 else None


def newest_run(runs: Sequence[Any], connector: str) -> Any | None:
    """The latest copy run of a connector."""
    mine = [r for r in runs if r.connector == connector]
    return max(mine, key=lambda r: (r.create_time.seconds, r.create_time.nanos), default=None)


def source_position(run: Any | None) -> int | None:
    """Committed position of a file source in bytes, as its copy run tells it; None while it has told none."""
    if run is None:
        return None
    for text in run.progress.offsets.values():
        try:
            return int(json.loads(text)["position"])
        except (ValueError, KeyError, TypeError):
            continue
    return None


def leg(done: int, run: Any | None) -> Leg:
    """A leg as its newest copy run tells it."""
    if run is None:
        return Leg(done, 0, 0.0, "WAITING")
    return Leg(done, int(run.progress.records), float(run.progress.bytes_per_second), run_state(run))


class Display(Protocol):
    """Shows the legs to whoever watches."""

    def show(self, legs: dict[str, Leg]) -> None:
        """The newest state of each leg."""


@contextmanager
def display(total: int) -> Iterator[Display]:
    """Bars on a terminal; elsewhere a line every two seconds."""
    if not sys.stderr.isatty():
        yield _Lines(total)
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:<14}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=False) as progress:
        yield _Bars(total, progress)


class _Bars:
    def __init__(self, total: int, progress: Any) -> None:
        self._total, self._progress = total, progress
        self._tasks: dict[str, Any] = {}
        self._meters: dict[str, Meter] = {}

    def show(self, legs: dict[str, Leg]) -> None:
        for name, one in legs.items():
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=self._total, told="")
                self._meters[name] = Meter(self._total)
            told = line_of(one, self._meters[name], time.monotonic())
            self._progress.update(self._tasks[name], completed=one.done_bytes, told=told)


class _Lines:
    def __init__(self, total: int, every_seconds: float = 2.0) -> None:
        self._total, self._every = total, every_seconds
        self._meters: dict[str, Meter] = {}
        self._told_at = 0.0
        self._last = ""

    def show(self, legs: dict[str, Leg]) -> None:
        now = time.monotonic()
        told = []
        for name, one in legs.items():
            meter = self._meters.setdefault(name, Meter(self._total))
            told.append(f"{name} {line_of(one, meter, now)}")
        text = "; ".join(told)
        done = all(one.done_bytes >= self._total for one in legs.values())
        if text != self._last and (done or now - self._told_at >= self._every):
            print(text, file=sys.stderr, flush=True)
            self._told_at, self._last = now, text


def line_of(one: Leg, meter: Meter, now: float) -> str:
    """One leg as a line for people."""
    rate = meter.rate(one.done_bytes, now)
    left = meter.seconds_left(one.done_bytes, rate)
    share = f"{one.done_bytes * 100 // max(1, meter.total)}% of {size(meter.total)}"
    if left == 0.0:
        return f"{share}, all there"
    eta = "" if left is None else f", {left:.0f} s left"
    state = "" if one.state == "RUNNING" else f" ({one.state.lower()})"
    return f"{share}, {one.records} records, {rate / 1e6:.1f} MB/s{eta}{state}"
