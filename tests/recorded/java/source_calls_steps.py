"""What the tasks of acme.CallSourceConnector are made to poll, and what is done with them meanwhile; and how their
notes are told, so that those of two workers can be compared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx

from keelman.testing.eventually import eventually
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
Ask = Callable[[str, str, Any], Awaitable[httpx.Response]]


@dataclass(frozen=True, slots=True)
class Case:
    """One task: its script, what else is in its configuration, and what is done once it comes to `waitN`."""

    script: str
    config: Mapping[str, str] = field(default_factory=dict)
    acts: tuple[str, ...] = ()
    fails: bool = False


def _boundary(kind: str, milliseconds: int = 60_000) -> dict[str, str]:
    return {"transaction.boundary": kind, "transaction.boundary.interval.ms": str(milliseconds)}


BOTH = {
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
    "stop throws": Case("2,wait1", {"throws": "stop"}, acts=("delete",)),
    "the last one is dropped": Case("t3,2", {**FILTER, **NO_VALUE}),
    "all are dropped": Case("d3,2,d1", {**FILTER, **NO_VALUE}),
    "no converter takes one": Case("b3", JSON, fails=True),
    "no converter takes one, which is tolerated": Case("b3,1", {**JSON, "errors.tolerance": "all"}),
    "too large": Case("2x2000000", fails=True),
    "paused and resumed": Case("2,wait1,3", acts=("pause", "go", "resume")),
    "stopped and resumed": Case("2,wait1,3", acts=("stop", "go", "resume")),
    "configured anew": Case("2,wait1,3", acts=("configure", "go")),
    "restarted": Case("2,wait1,3", acts=("restart", "go")),
    "deleted": Case("2,wait1", acts=("delete",)),
}
EXACTLY_ONCE = {
    "interval that is over": Case("2,3,empty,1", _boundary("interval", 1)),
    "interval that is not over, then deleted": Case("2,3,empty,1,wait1", _boundary("interval"), acts=("delete",)),
    "interval that is not over, then thrown": Case("2,3,throw", _boundary("interval"), fails=True),
    "its own ends: with a poll": Case("3,c2,a2,1,c1", _boundary("connector")),
    "its own ends: with a record": Case("1,r3,c1,q3,c1", _boundary("connector")),
    "its own ends: none, then deleted": Case("2,wait1", _boundary("connector"), acts=("delete",)),
    "its own ends: acknowledged in the next poll": Case("c2,ack,c1", _boundary("connector")),
}


async def play(ask: Ask, bootstrap: str, folder: Path, name: str, *, exactly_once: bool) -> dict[str, list[str]]:
    """What the tasks of all cases note, all at the same time on one worker; `name` is before their names."""
    cases = {**BOTH, **(EXACTLY_ONCE if exactly_once else {})}
    more = {"bootstrap": bootstrap} if exactly_once else {}
    await asyncio.to_thread(lambda: [create_topic(bootstrap, f"{name}-{n}") for n in range(len(cases))])
    played = [_play(ask, folder / f"{name}-{n}", one, more) for n, one in enumerate(cases.values())]
    return dict(zip(cases, await asyncio.gather(*played), strict=True))


async def _play(ask: Ask, calls: Path, case: Case, more: Mapping[str, str]) -> list[str]:
    name = calls.name
    config = {
        "name": name,
        "connector.class": CONNECTOR,
        "tasks.max": "1",
        "calls": str(calls),
        "topic": name,
        "script": case.script,
        **more,
        **case.config,
    }
    answer = await ask("PUT", f"/connectors/{name}/config", config)
    assert answer.status_code in (200, 201), answer.text

    def count(word: str) -> int:
        text = calls.read_text() if calls.exists() else ""
        return sum(line.split(" ")[0] == word for line in text.splitlines())

    async def noted(word: str, times: int = 1) -> None:
        await eventually(lambda: count(word) >= times, seconds=SECONDS, what=f"{name} ({case.script}) notes {word}")

    if case.acts:
        await noted("wait1")
        await _settled(calls)
    for act in case.acts:
        if act == "go":
            calls.with_name(f"{name}.wait1").touch()
        elif act in ("pause", "stop", "resume"):
            await ask("PUT", f"/connectors/{name}/{act}", None)
        elif act == "restart":
            await ask("POST", f"/connectors/{name}/tasks/0/restart", None)
        elif act == "configure":
            await ask("PUT", f"/connectors/{name}/config", {**config, "other": "value"})
        else:
            await ask("DELETE", f"/connectors/{name}", None)
        if act in ("restart", "configure"):
            await noted("start", 2)
        elif act in ("stop", "delete"):
            await noted("stop")
        elif act == "pause":
            await _has(ask, name, "PAUSED")
        await _settled(calls)
    if case.fails:
        await _has(ask, name, "FAILED")
        await noted("stop")
    elif "delete" not in case.acts:
        await noted("idle")
    await _settled(calls)
    found = calls.read_text().splitlines()
    await ask("DELETE", f"/connectors/{name}", None)
    return found


async def _has(ask: Ask, name: str, state: str) -> None:
    async def there() -> bool:
        answer = await ask("GET", f"/connectors/{name}/status", None)
        return answer.status_code == 200 and [one["state"] for one in answer.json()["tasks"]] == [state]

    await eventually(there, seconds=SECONDS, what=f"{name} is {state}")


async def _settled(calls: Path) -> None:
    """Returns once nothing more was noted for some flushes."""
    seen, quiet = b"", 0

    async def still() -> bool:
        nonlocal seen, quiet
        now = calls.read_bytes()
        quiet = quiet + 1 if now == seen else 0
        seen = now
        await asyncio.sleep(0.2)
        return quiet >= 8

    await eventually(still, seconds=SECONDS, what=f"{calls} is quiet")


def told(found: Mapping[str, list[str]], *, exactly_once: bool) -> dict[str, list[str]]:
    """The notes of each case. Records that it heard of one after the other are sorted, and in one line where they
    differ in their number alone. Without transactions it hears of them while it is polled, so there they come behind,
    with whether it heard of a commit where it did not fail; and that it had no more is left out: it is polled ahead."""
    return {case: _told(lines, BOTH.get(case, Case("")), exactly_once) for case, lines in found.items()}


def _told(lines: list[str], case: Case, exactly_once: bool) -> list[str]:
    if exactly_once:
        return _in_short(lines)
    heard = [one for one in lines if one.startswith("commitRecord")]
    commits = sorted({one.rstrip() for one in lines if one.startswith("commit ") and not case.fails})
    rest = [one for one in lines if not one.startswith(("commit", "idle"))]
    return [*(one.rstrip() for one in rest), *_in_short(heard), *commits]


def _in_short(lines: list[str]) -> list[str]:
    found: list[str] = []
    for is_heard, part in groupby(lines, key=lambda line: line.startswith("commitRecord")):
        if not is_heard:
            found += [line.rstrip() for line in part]
            continue
        split = sorted((line.split() for line in part), key=lambda words: int(words[2]))
        for (role, rest), some in groupby(split, key=lambda words: (words[1], " ".join(words[3:]))):
            numbers = [words[2] for words in some]
            found.append(f"commitRecord {role} {numbers[0]}-{numbers[-1]} {rest}".rstrip())
    return found
