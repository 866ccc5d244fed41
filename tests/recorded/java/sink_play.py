"""One sink of acme.CallSinkConnector on a Connect worker: the actions on it, and the calls of its tasks."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Consumer, Producer, TopicPartition

from support.eventually import eventually

SEEN_SECONDS = 60.0
MOST_IN_A_ROW = 2
"""The most preCommit calls without a put between them: one when it is due, one when the task is closed."""
Ask = Callable[[str, str, Any], Awaitable[httpx.Response]]
Acts = Mapping[str, Callable[[], Awaitable[object]]]


@dataclass
class Play:
    """One scenario that is being played: its connector, its topic, and the file that its tasks write."""

    bootstrap: str
    ask: Ask
    name: str
    config: Mapping[str, str]
    folder: Path
    tasks: int = 1
    acts: Acts = field(default_factory=dict)
    _seen: dict[int, int] = field(default_factory=dict)
    _sent: int = 0

    @property
    def calls(self) -> Path:
        """The file of its first task."""
        return self.folder / self.name

    def lines(self, task: int = 0) -> list[str]:
        """The lines of a task's file, without times."""
        file = self.calls.with_name(f"{self.name}-{task}") if task else self.calls
        text = file.read_text() if file.exists() else ""
        return [line.partition(" ")[2] for line in text.splitlines()]

    def told(self, waits: bool) -> list[str]:
        """The compared calls, independent of the connector's name.

        Those of several tasks are listed task by task, with the number.
        """
        if self.tasks == 1:
            return told([line.replace(self.name, "NAME") for line in self.lines()], waits=waits)
        results = []
        for task in range(self.tasks):
            calls = told([line.replace(self.name, "NAME") for line in self.lines(task)], waits=False)
            results += [f"{task}: {call}" for call in without_moves(calls)]
        return results

    async def create(self, **more: str) -> None:
        """Creates the connector, or changes its configuration; an underscore in a key means a dot."""
        values = {key.replace("_", "."): value for key, value in more.items()}
        config = {
            "connector.class": "acme.CallSinkConnector",
            "tasks.max": "1",
            "topics": self.name,
            "calls": str(self.calls),
            **self.config,
            **values,
        }
        answer = await self.ask("PUT", f"/connectors/{self.name}/config", config)
        assert answer.status_code in (200, 201), answer.text

    async def order(self, method: str, verb: str) -> None:
        """Pauses, resumes, stops or restarts the connector."""
        answer = await self.ask(method, f"/connectors/{self.name}/{verb}", None)
        assert answer.is_success, answer.text

    async def send(self, count: int, *partitions: int) -> None:
        """Sends so many records to each partition, to the first if none is named; one batch per partition."""

        def send() -> None:
            producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 200})
            for partition in partitions or (0,):
                for n in range(count):
                    producer.produce(self.name, str(n).encode(), partition=partition)
            assert producer.flush(60) == 0

        await asyncio.to_thread(send)

    async def until(self, line: str, task: int = 0) -> None:
        """Returns once a task has written this line, after the line that was last waited for."""

        def found() -> bool:
            lines = self.lines(task)
            for at in range(self._seen.get(task, 0), len(lines)):
                if lines[at] == line:
                    self._seen[task] = at + 1
                    return True
            return False

        try:
            await eventually(found, seconds=SEEN_SECONDS, what=f"{self.name}: {line}")
        except AssertionError as error:
            tail = self.lines(task)[-12:]
            raise AssertionError(f"{error}; the last calls are {tail}") from error

    async def send_all(self, count: int, partitions: int) -> None:
        """Sends so many records to each of so many partitions, and waits until the tasks have got the last of each."""
        await self.send(count, *range(partitions))
        self._sent = self._sent + count

        def given() -> set[int]:
            lines = [line for task in range(self.tasks) for line in self.lines(task)]
            puts = [word for line in lines if line.startswith("put ") for word in line.split()[1:]]
            ranges = [(int(item), range_) for item, _, range_ in (word.partition("@") for word in puts)]
            return {item for item, range_ in ranges if int(range_.split("-")[1]) == self._sent - 1}

        await eventually(
            lambda: len(given()) == partitions,
            seconds=SEEN_SECONDS,
            what=f"{self.name}: {self._sent} of each partition",
        )

    async def until_started(self, times: int) -> None:
        """Returns once its tasks have been started so often in total, and each has received partitions since."""

        def given() -> bool:
            lines = [self.lines(task) for task in range(self.tasks)]
            starts = sum(line.startswith("start") for single_line in lines for line in single_line)
            kinds = [[_kind(line) for line in line] for line in lines]
            last = [
                next(kind for kind in reversed(kind) if kind in ("start", "open", "close", "stop")) for kind in kinds
            ]
            return starts >= times and set(last) == {"open"}

        await eventually(given, seconds=SEEN_SECONDS, what=f"{self.name}: {times} starts")

    async def until_stopped(self) -> None:
        """Returns once each of its tasks was stopped as often as started."""

        def stopped() -> bool:
            kinds = [[_kind(line) for line in self.lines(task)] for task in range(self.tasks)]
            return all(kind.count("stop") == kind.count("start") for kind in kinds)

        await eventually(stopped, seconds=SEEN_SECONDS, what=f"{self.name} is stopped")

    async def until_state(self, *states: str) -> None:
        """Returns once its tasks are in these states."""

        async def reached() -> bool:
            status = (await self.ask("GET", f"/connectors/{self.name}/status", None)).json()
            return [task["state"] for task in status.get("tasks", ())] == list(states)

        await eventually(reached, seconds=SEEN_SECONDS, what=f"{self.name}: {states}")

    async def until_group(self, offset: int, partition: int = 0) -> None:
        """Returns once its group shows this offset."""
        await eventually(lambda: self.group(partition) == offset, seconds=SEEN_SECONDS, what=f"{self.name} at {offset}")

    def group(self, partition: int = 0) -> int:
        """The offset that its group shows."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"connect-{self.name}"})
        try:
            return int(consumer.committed([TopicPartition(self.name, partition)], timeout=30)[0].offset)
        finally:
            consumer.close()

    async def delete(self, stops: int = 1) -> None:
        """Deletes the connector, and returns once so many tasks were stopped."""
        answer = await self.ask("DELETE", f"/connectors/{self.name}", None)
        assert answer.is_success, answer.text
        for _ in range(stops):
            await self.until("stop")


def told(lines: Sequence[str], *, waits: bool) -> list[str]:
    """The calls that are compared.

    How often an idle task is called is left out. Without `waits`, empty puts and preCommit calls that report no
    progress are left out too.
    """
    calls: list[str] = []
    for line in lines:
        if line.startswith(("  ", "flush")):  # part of the call before
            calls[-1] += f" | {line.strip()}"
        else:
            calls.append(line)
    runs = [list(run) for are_commits, run in itertools.groupby(calls, _commits) if are_commits]
    often = [f"{len(run)} times in a row: {run[0]}" for run in runs if len(run) > MOST_IN_A_ROW]
    if not waits:
        calls = _without_idle(calls)
    return [*_folded(calls), *often]


def without_moves(calls: Sequence[str]) -> list[str]:
    """Removes differences that depend on which member joined or which partition was fetched first.

    Of several rebalances in a row the first close and the last open are kept; of puts in a row their records and the
    last commit.
    """
    actual_without_moves: list[str] = []
    for call in calls:
        kind, last = _kind(call), _kind(actual_without_moves[-1]) if actual_without_moves else ""
        if kind == "preCommit" and last == "open":
            continue
        if kind == "close" and last == "open":  # no put between them
            actual_without_moves.pop()
            if _kind(actual_without_moves[-1]) in ("start", "close"):
                continue
        if kind == "put" and [_kind(actual_without_move) for actual_without_move in actual_without_moves[-2:]] == [
            "put",
            "preCommit",
        ]:
            actual_without_moves.pop()
        if kind == "put" and _kind(actual_without_moves[-1]) == "put":
            actual_without_moves.append("put " + _joined([*actual_without_moves.pop().split()[1:], *call.split()[1:]]))
        else:
            actual_without_moves.append(call)
    return actual_without_moves


def _joined(ranges: Sequence[str]) -> str:
    """Ranges of offsets, sorted; adjacent ranges are merged."""
    results: list[str] = []
    for single_range in sorted(ranges, key=lambda value: [int(number) for number in re.findall(r"\d+", value)]):
        place, begin, end = re.split("[@-]", single_range)
        last = re.split("[@-]", results[-1]) if results else ["", "", "0"]
        if (last[0], int(last[2]) + 1) == (place, int(begin)):
            results.pop()
            begin = last[1]
        results.append(f"{place}@{begin}-{end}")
    return " ".join(results)


def exchanged(calls: Sequence[str]) -> list[str]:
    """The calls of two tasks with two partitions of four each, renumbered as if one task were the other."""
    results = []
    for call in calls:
        other = re.sub(r"^[01]|(?<=NAME-)[01]", lambda value: str(1 - int(value[0])), call)
        results.append(re.sub(r"(?<![=\d-])[0-3](?=[],=@])", lambda value: str((int(value[0]) + 2) % 4), other))
    return sorted(results, key=lambda call: call[0])


def _kind(call: str) -> str:
    return call.partition(" ")[0]


def _commits(call: str) -> bool:
    return call.startswith("preCommit")


def _without_idle(calls: Sequence[str]) -> list[str]:
    without_idle, present_call = [], ""
    for call in calls:
        is_known = call == present_call or re.fullmatch(r"preCommit \{([01]=0(, )?)+\}.*\}", call)
        if _commits(call):
            present_call = call
        if call != "empty" and not is_known:
            without_idle.append(call)
    return without_idle


def _folded(calls: Sequence[str]) -> list[str]:
    """Removes calls that repeat the call before, or the two before."""
    results: list[str] = []
    for call in calls:
        results.append(call)
        if results[-1:] == results[-2:-1]:
            results.pop()
        elif len(results) > 3 and results[-2:] == results[-4:-2]:
            del results[-2:]
    return results
