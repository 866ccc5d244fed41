"""One sink of acme.CallSinkConnector on a Connect worker: what may be done to it, and how its tasks were called."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Consumer, Producer, TopicPartition

from keelman.testing.eventually import eventually

SEEN_SECONDS = 60.0
MOST_IN_A_ROW = 2
"""So often preCommit is called without a put between: when it is time, and when the task is closed."""
Ask = Callable[[str, str, Any], Awaitable[httpx.Response]]


@dataclass
class Play:
    """One scenario that is being played: its connector, its topic, and the file that its tasks write."""

    bootstrap: str
    ask: Ask
    name: str
    config: Mapping[str, str]
    folder: Path
    _seen: int = 0

    @property
    def calls(self) -> Path:
        """The file."""
        return self.folder / self.name

    def lines(self) -> list[str]:
        """What is in it, without times."""
        text = self.calls.read_text() if self.calls.exists() else ""
        return [line.partition(" ")[2] for line in text.splitlines()]

    def told(self, waits: bool) -> list[str]:
        """The calls as they are compared: any connector's."""
        return told([line.replace(self.name, "NAME") for line in self.lines()], waits=waits)

    async def create(self, **more: str) -> None:
        """Creates the connector, or configures it anew; an underscore stands for a dot."""
        given = {key.replace("_", "."): value for key, value in more.items()}
        config = {
            "connector.class": "acme.CallSinkConnector",
            "tasks.max": "1",
            "topics": self.name,
            "calls": str(self.calls),
            **self.config,
            **given,
        }
        answer = await self.ask("PUT", f"/connectors/{self.name}/config", config)
        assert answer.status_code in (200, 201), answer.text

    async def order(self, method: str, verb: str) -> None:
        """Has it paused, resumed, stopped, restarted."""
        answer = await self.ask(method, f"/connectors/{self.name}/{verb}", None)
        assert answer.is_success, answer.text

    async def send(self, count: int, partition: int = 0) -> None:
        """So many records, in one batch."""

        def send() -> None:
            producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 200})
            for n in range(count):
                producer.produce(self.name, str(n).encode(), partition=partition)
            assert producer.flush(60) == 0

        await asyncio.to_thread(send)

    async def until(self, line: str) -> None:
        """Returns once a task has written this, behind what was waited for last."""

        def found() -> bool:
            lines = self.lines()
            for at in range(self._seen, len(lines)):
                if lines[at] == line:
                    self._seen = at + 1
                    return True
            return False

        try:
            await eventually(found, seconds=SEEN_SECONDS, what=f"{self.name}: {line}")
        except AssertionError as error:
            tail = self.lines()[-12:]
            raise AssertionError(f"{error}; the last calls are {tail}") from error

    async def until_state(self, *states: str) -> None:
        """Returns once its tasks are in these."""

        async def reached() -> bool:
            status = (await self.ask("GET", f"/connectors/{self.name}/status", None)).json()
            return [task["state"] for task in status.get("tasks", ())] == list(states)

        await eventually(reached, seconds=SEEN_SECONDS, what=f"{self.name}: {states}")

    async def until_group(self, offset: int, partition: int = 0) -> None:
        """Returns once its group shows this."""
        await eventually(lambda: self.group(partition) == offset, seconds=SEEN_SECONDS, what=f"{self.name} at {offset}")

    def group(self, partition: int = 0) -> int:
        """The offset that its group shows."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"connect-{self.name}"})
        try:
            return int(consumer.committed([TopicPartition(self.name, partition)], timeout=30)[0].offset)
        finally:
            consumer.close()

    async def delete(self, stops: int = 1) -> None:
        """Deletes it, and returns when so many tasks were stopped."""
        answer = await self.ask("DELETE", f"/connectors/{self.name}", None)
        assert answer.is_success, answer.text
        for _ in range(stops):
            await self.until("stop")


def told(lines: Sequence[str], *, waits: bool) -> list[str]:
    """The calls that count. How often a task is called while nothing happens does not; unless it `waits` for just
    that, puts of nothing do not at all, nor that it is to say how far it is where that is news to nobody."""
    calls: list[str] = []
    for line in lines:
        if line.startswith(("  ", "flush")):  # within the call before
            calls[-1] += f" | {line.strip()}"
        else:
            calls.append(line)
    runs = [list(run) for are_commits, run in itertools.groupby(calls, _commits) if are_commits]
    often = [f"{len(run)} times in a row: {run[0]}" for run in runs if len(run) > MOST_IN_A_ROW]
    if not waits:
        calls = _without_idle(calls)
    return [*_folded(calls), *often]


def _commits(call: str) -> bool:
    return call.startswith("preCommit")


def _without_idle(calls: Sequence[str]) -> list[str]:
    found, known = [], ""
    for call in calls:
        is_known = call == known or re.fullmatch(r"preCommit \{([01]=0(, )?)+\}.*\}", call)
        if _commits(call):
            known = call
        if call != "empty" and not is_known:
            found.append(call)
    return found


def _folded(calls: Sequence[str]) -> list[str]:
    """Without what repeats the call before, or the two before."""
    found: list[str] = []
    for call in calls:
        found.append(call)
        if found[-1:] == found[-2:-1]:
            found.pop()
        elif len(found) > 3 and found[-2:] == found[-4:-2]:
            del found[-2:]
    return found
