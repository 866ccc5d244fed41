"""Scripts for the tasks of acme.CallSourceConnector, the actions on them meanwhile, and the notes that are compared."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Producer

from keelman.workers.rest.asking import is_momentary
from support.eventually import eventually
from support.kafka.topics import create_topic

CONNECTOR = "acme.CallSourceConnector"
FILTER = {"transforms": "drop", "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter"}
NO_VALUE = {
    "transforms.drop.predicate": "none",
    "predicates": "none",
    "predicates.none.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
}
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "true"}
WORKER = {"offset.flush.interval.ms": "400"}
SECONDS = 120.0
QUIET_LOOKS = 8
GUARANTEES = {"exactly once": True, "at least once": False}
Ask = Callable[[str, str, Any], Awaitable[httpx.Response]]
Act = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Case:
    """One connector: the script of its tasks, further configuration, and the actions once its tasks reach `waitN`."""

    script: str
    config: Mapping[str, str] = field(default_factory=dict)
    acts: tuple[str, ...] = ()
    fails: bool = False


def _boundary(kind: str, milliseconds: int = 60_000) -> dict[str, str]:
    return {"transaction.boundary": kind, "transaction.boundary.interval.ms": str(milliseconds)}


POLLS = {
    "small, empty and no polls": Case("3,empty,none,1,2"),
    "a slow poll": Case("2,slow,1"),
    "a poll that is larger than any batch": Case("5000x1000,1"),
    "acknowledged in the next poll": Case("2,ack,ack,ack"),
    "a poll that has no more": Case("2,block,3,block"),
    "retriable": Case("1,retry,2,retry,retry,1"),
    "thrown": Case("2,throw", fails=True),
    "the first is thrown": Case("throw", fails=True),
    "commitRecord throws": Case("2,3,1", {"throws": "commitRecord"}),
    "commit throws": Case("2,3,1", {"throws": "commit"}),
    "the last one is dropped": Case("t3,2", {**FILTER, **NO_VALUE}),
    "all are dropped": Case("d3,2,d1", {**FILTER, **NO_VALUE}),
    "no converter takes one": Case("b3", JSON, fails=True),
    "no converter takes one, which is tolerated": Case("b3,1", {**JSON, "errors.tolerance": "all"}),
    "too large": Case("2x2000000", fails=True),
}
POLLS_IN_TRANSACTIONS = {
    "interval that is over": Case("2,3,empty,1", _boundary("interval", 1)),
    "interval that is not over, then thrown": Case("2,3,throw", _boundary("interval"), fails=True),
    "its own ends: with a poll": Case("3,c2,a2,1,c1", _boundary("connector")),
    "its own ends: with a record": Case("1,r3,c1,q3,c1", _boundary("connector")),
    "its own ends: acknowledged in the next poll": Case("c2,ack,c1", _boundary("connector")),
}
LIVES = {
    "stop throws": Case("2,wait1", {"throws": "stop"}, acts=("delete",)),
    "paused and resumed": Case("2,wait1,3", acts=("pause", "go 1", "resume")),
    "stopped and resumed": Case("2,wait1,3", acts=("stop", "go 1", "resume")),
    "configured anew": Case("2,wait1,3", acts=("configure", "go 1")),
    "its task is restarted": Case("2,wait1,3", acts=("restart", "go 1")),
    "it is restarted with its task": Case("2,wait1,3", acts=("restart all", "go 1")),
    "deleted": Case("2,wait1", acts=("delete",)),
    "one task, two, one": Case("2,wait1,3,wait2,1", acts=("two tasks", "go 1", "one task", "go 2")),
}
LIVES_IN_TRANSACTIONS = {
    "interval that is not over, then deleted": Case("2,3,empty,1,wait1", _boundary("interval"), acts=("delete",)),
    "its own ends: none, then deleted": Case("2,wait1", _boundary("connector"), acts=("delete",)),
    "another has its transactional id": Case("2,wait1,3", acts=("fence", "go 1"), fails=True),
}
IN_A_GROUP = {
    "the worker is ended and started": Case("2,wait1,3", acts=("bounce", "go 1")),
    "another worker joins and leaves": Case(
        "2,wait1,3,wait2,1", {"tasks.max": "2"}, acts=("join", "go 1", "leave", "go 2")
    ),
}
"""Played one after the other, each with the group to itself."""
IN_ONE_PROCESS = {True: {**POLLS, **POLLS_IN_TRANSACTIONS}, False: POLLS}
THROUGH_A_WORKER = {True: {**LIVES, **LIVES_IN_TRANSACTIONS}, False: LIVES}
"""By whether they are exactly-once."""


async def play(
    ask: Ask,
    bootstrap: str,
    folder: Path,
    cases: Mapping[str, Case],
    *,
    name: str,
    exactly_once: bool,
    group: str = "",
    acts: Mapping[str, Act] | None = None,
) -> dict[str, list[str]]:
    """Plays these cases at the same time on one worker of a group, and returns the notes of their tasks.

    Connectors are called `name` with a number; `acts` are the actions on the group.
    """
    folder.mkdir(parents=True, exist_ok=True)
    more = {"bootstrap": bootstrap} if exactly_once else {}
    names = [f"{name}-{n}" for n in range(len(cases))]
    await asyncio.to_thread(lambda: [create_topic(bootstrap, name, 2) for name in names])
    played = [
        _Played(ask, bootstrap, group, folder / name, case, more, acts or {}).notes()
        for name, case in zip(names, cases.values(), strict=True)
    ]
    return dict(zip(cases, await asyncio.gather(*played), strict=True))


@dataclass(frozen=True, slots=True)
class _Played:
    """One case that is being played."""

    ask: Ask
    bootstrap: str
    group: str
    calls: Path
    case: Case
    more: Mapping[str, str]
    acts: Mapping[str, Act]

    @property
    def name(self) -> str:
        """The state of the connector, and its topic."""
        return self.calls.name

    @property
    def files(self) -> tuple[Path, Path]:
        """The folder that its tasks write."""
        return self.calls, self.calls.with_name(f"{self.name}-1")

    @property
    def config(self) -> dict[str, str]:
        """The connector's first configuration."""
        return {
            "name": self.name,
            "connector.class": CONNECTOR,
            "tasks.max": "1",
            "calls": str(self.calls),
            "topic": self.name,
            "script": self.case.script,
            **self.more,
            **self.case.config,
        }

    async def notes(self) -> list[str]:
        """The notes of its tasks; those of the second task begin with `1:`."""
        await self._order("PUT", "config", self.config)
        if self.case.acts:
            tasks = int(self.config["tasks.max"])
            await eventually(lambda: self._count("wait1") >= tasks, seconds=SECONDS, what=f"{self.name} waits")
            await self._settled()
        for act in self.case.acts:
            await self._do(act)
            await self._settled()
        if self.case.fails:
            await self._failed()
        elif "delete" not in self.case.acts:
            await self._noted("idle", 1)
        await self._settled()
        lines = self._lines()
        await self._order("DELETE")
        return lines

    async def _do(self, act: str) -> None:
        stops, starts = self._count("stop"), self._count("start")
        if act in self.acts:
            await self.acts[act]()
            await self._noted("start", starts + 1)
        elif act.startswith("go "):
            self.files[0].with_name(f"{self.name}.wait{act[3:]}").touch()
        elif act == "fence":
            await asyncio.to_thread(self._fence)
        elif act in ("pause", "stop", "resume"):
            await self._order("PUT", act)
            if act == "pause":
                await self._reaches("PAUSED")
            if act == "stop":
                await self._noted("stop", stops + 1)
        elif act == "delete":
            await self._order("DELETE")
            await self._noted("stop", stops + 1)
        else:
            method, what, news = CHANGES[act]
            await self._order(method, what, {**self.config, **news} if news else None)
            word, times = ("stop", stops) if act == "one task" else ("start", starts)
            await self._noted(word, times + 1)

    def _fence(self) -> None:
        """Begins transactions under the id of its first task."""
        options = {"bootstrap.servers": self.bootstrap, "transactional.id": f"{self.group}-{self.name}-0"}
        Producer(options).init_transactions(60)

    async def _order(self, method: str, what: str = "", body: Any = None) -> None:
        path = f"/connectors/{self.name}" + (f"/{what}" if what else "")

        async def answered() -> bool:
            answer = await self.ask(method, path, body)
            if is_momentary(answer.status_code, answer.content):
                return False
            return answer.is_success or method == "DELETE"

        await eventually(answered, seconds=SECONDS, what=f"{method} {path}")

    def _lines(self) -> list[str]:
        lines = [
            file.read_text().replace(self.name, "NAME").splitlines() if file.exists() else [] for file in self.files
        ]
        first, second = map(in_short, lines)
        return [*first, *(f"1: {line}" for line in second)]

    def _count(self, word: str) -> int:
        texts = [file.read_text() for file in self.files if file.exists()]
        return sum(line.split(" ")[0] == word for text in texts for line in text.splitlines())

    async def _noted(self, word: str, times: int) -> None:
        what = f"{self.name} ({self.case.script}) notes {word} {times} times"
        await eventually(lambda: self._count(word) >= times, seconds=SECONDS, what=what)

    async def _failed(self) -> None:
        """Returns once its task has failed, or has continued after a failure."""

        async def ended() -> bool:
            return self._count("idle") > 0 or await self._is("FAILED")

        await eventually(ended, seconds=SECONDS, what=f"{self.name} fails")
        await self._noted("stop", 1)

    async def _reaches(self, state: str) -> None:
        await eventually(lambda: self._is(state), seconds=SECONDS, what=f"{self.name} is {state}")

    async def _is(self, state: str) -> bool:
        answer = await self.ask("GET", f"/connectors/{self.name}/status", None)
        return answer.status_code == 200 and [task["state"] for task in answer.json()["tasks"]] == [state]

    async def _settled(self) -> None:
        """Returns once several flushes have added no note."""
        seen, quiet = b"", 0

        async def still() -> bool:
            nonlocal seen, quiet
            now = b"".join(file.read_bytes() for file in self.files if file.exists())
            quiet = quiet + 1 if now == seen else 0
            seen = now
            await asyncio.sleep(0.2)
            return quiet >= QUIET_LOOKS

        await eventually(still, seconds=SECONDS, what=f"{self.name} is quiet")


CHANGES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "restart": ("POST", "tasks/0/restart", {}),
    "restart all": ("POST", "restart?includeTasks=true&onlyFailed=false", {}),
    "configure": ("PUT", "config", {"other": "value"}),
    "two tasks": ("PUT", "config", {"tasks.max": "2"}),
    "one task": ("PUT", "config", {"tasks.max": "1"}),
}


def in_short(lines: Sequence[str]) -> list[str]:
    """Folds consecutive commitRecord lines that differ only in the next number into one."""
    results: list[str] = []
    last: tuple[str, int, int, str] | None = None
    for line in lines:
        match = re.fullmatch(r"commitRecord (\w+) (\d+)(?:-(\d+))? (.*)", line.rstrip())
        if match is None:
            last = None
            results.append(line.rstrip())
            continue
        role, begin, end, rest = match[1], int(match[2]), int(match[3] or match[2]), match[4]
        if last is not None and (last[0], last[2] + 1, last[3]) == (role, begin, rest):
            begin = last[1]
            results.pop()
        last = (role, begin, end, rest)
        results.append(f"commitRecord {role} {begin}-{end} {rest}")
    return results


def compared(lines: Sequence[str], *, exactly_once: bool, fails: bool = False, either: bool = False) -> list[str]:
    """The notes of one connector that two workers must have in common.

    With transactions a task has one thread: all notes, in order. Without them it has several: the calls of each thread,
    in order. Commits in other threads come with time, so only their presence is compared, for a task that did not fail;
    for a task that failed, a last poll is left out.

    With `either`, the group chooses which of two tasks moves, so either may have been the first.
    """
    first = [line for line in lines if not line.startswith("1: ")]
    second = [line.removeprefix("1: ") for line in lines if line.startswith("1: ")]
    parts = [part for part in (first, second) if part]
    stored_parts = [part if exactly_once else _by_thread(part, fails) for part in parts]
    if either:
        stored_parts = sorted([line.replace("NAME-1", "NAME-0") for line in part] for part in stored_parts)
    return [line for n, part in enumerate(stored_parts) for line in ([f"task {n}"] if n else []) + part]


def _by_thread(lines: Sequence[str], fails: bool) -> list[str]:
    own = [line for line in lines if line.split(" ")[1] == "own" and not (fails and line == "idle own")]
    heard = in_short([line for line in lines if line.startswith("commitRecord other")])
    return [*own, *heard, *({"commit other"} & set(lines) if not fails else ())]
