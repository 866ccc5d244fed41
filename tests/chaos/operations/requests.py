"""The requests of random clients and their results: each answer is kept, and checked on arrival."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from chaos.operations.answers import KINDS, excused, sure
from chaos.operations.connectors import ALTERED, Connectors
from chaos.operations.faults import Faults
from chaos.operations.history import Operation
from support.worker.groups import Workers

PAUSE_SECONDS = 0.25
PLANS = {
    "create": 12,
    "put": 10,
    "patch": 8,
    "pause": 6,
    "resume": 12,
    "stop": 7,
    "restart": 8,
    "restart task": 4,
    "delete": 5,
    "offsets": 8,
    "read": 14,
    "other": 5,
    "put and read": 6,
}
"""A client's next actions, with their weights."""
READS = ("config", "info", "status", "tasks", "list", "expand", "task status", "offsets")
OTHERS = ("topics", "reset topics", "validate", "logger", "illegal put")
QUERIES = ("", "?includeTasks=true", "?onlyFailed=true", "?includeTasks=true&onlyFailed=true")
BODIES = {
    "validate": {"connector.class": "FileStreamSink", "name": "anyone", "topics": "x"},
    "logger": {"level": "INFO"},
    "illegal put": {"connector.class": "FileStreamSink", "topics": "a", "topics.regex": "b"},
}


@dataclass
class Requests:
    """All clients' requests of one round. `odd` is called for answers that are not permitted."""

    workers: Workers
    connectors: Connectors
    faults: Faults
    http: httpx.AsyncClient
    odd: Callable[[str], None]
    history: list[Operation] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> float:
        """Seconds since the round began."""
        return round(time.monotonic() - self.begun, 3)

    async def ask(
        self, kind: str, name: str, body: Any = None, *, worker: int = 0, client: int = 0, query: str = ""
    ) -> Operation:
        """Sends one request."""
        operation = Operation(kind, "" if kind in ("list", "expand") else name, body, self.now, query=query)
        operation.worker, operation.client = worker, client
        self.history.append(operation)
        address = f"http://{self.workers.processes[worker].id}{KINDS[kind].path.format(name)}{query}"
        begun = time.monotonic()
        try:
            answer = await self.http.request(KINDS[kind].method, address, json=body)
            operation.status = answer.status_code
            with contextlib.suppress(ValueError):
                operation.answer = answer.json()
        except httpx.HTTPError as error:
            operation.error = repr(error)
        operation.ended = self.now
        if not sure(operation):
            disturbed = self.faults.disturbed(worker, begun, time.monotonic())
            if not excused(operation, disturbed=disturbed):
                self.odd(f"may not be answered: {operation} {operation.answer if not operation.message else ''}")
        return operation

    async def client(self, number: int, chance: random.Random, seconds: float) -> None:
        """Sends one request after another for this many seconds."""
        (plans, weights) = zip(*PLANS.items(), strict=True)
        while self.now < seconds:
            name = chance.choice(self.connectors.names)
            await self._do(chance.choices(plans, weights)[0], name, number, chance)
            await asyncio.sleep(chance.random() * PAUSE_SECONDS)

    async def _do(self, plan: str, name: str, client: int, chance: random.Random) -> None:
        async def ask(kind: str, body: Any = None, query: str = "") -> None:
            worker = self.faults.someone(chance)
            await self.ask(kind, name, body, worker=worker, client=client, query=query)

        config = self.connectors.config(name, chance)
        if plan == "create":
            state = chance.choice((None, None, None, "PAUSED", "STOPPED", "RUNNING"))
            await ask("create", {"name": name, "config": config, **({"initial_state": state} if state else {})})
        elif plan == "patch":
            changed = chance.choice([key for key in ("tasks.max", "topic", "topics") if key in config])
            await ask("patch", {changed: config[changed], "patched": config["tag"]})
            if chance.random() < 0.3:
                await ask("patch", {"tasks.max": None, "patched": config["tag"]})
        elif plan == "restart":
            await ask("restart", query=chance.choice(QUERIES))
        elif plan == "offsets":
            await self._alter(name, ask, chance)
        elif plan == "read":
            await ask(chance.choice(READS))
        elif plan == "other":
            kind = chance.choice(OTHERS)
            await ask(kind, BODIES.get(kind), chance.choice(("", "?scope=cluster")) if kind == "logger" else "")
        elif plan in ("put", "put and read"):
            await ask("put", config)
            if plan == "put and read":
                await ask("config")
        else:
            await ask(plan)

    async def _alter(self, name: str, ask: Callable[..., Any], chance: random.Random) -> None:
        """Alters or resets the offsets of connectors whose deliveries are not judged; reads them."""
        if self.connectors.word(name) in ALTERED:
            if chance.random() < 0.7:
                await ask("stop")
            if chance.random() < 0.6:
                await ask("alter offsets", {"offsets": [self.connectors.offset(name, chance.randrange(20) * 10)]})
            else:
                await ask("reset offsets")
        await ask("offsets")
