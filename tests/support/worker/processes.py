"""The base of the worker's tests: worker processes, and a Spark side of the link that copies nothing but answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.api.copy.v1 import watch_pb2 as wire_watch
from keelman.api.copy.v1 import worker_link_service_pb2 as wire
from keelman.api.copy.v1.worker_link_service_pb2_grpc import (
    WorkerLinkServiceServicer,
    add_WorkerLinkServiceServicer_to_server,
)
from keelman.kafka.tables.reading import Row
from keelman.rpc.health import is_serving
from keelman.rpc.server import RpcService, serve
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import first_of
from keelman.worker.storage.config_state import ConfigState
from support.eventually import eventually

ENDED = copy.COPY_RUN_STATE_ENDED
FAILED = copy.COPY_RUN_STATE_FAILED
FENCED = copy.COPY_RUN_STATE_FENCED
RUNNING = copy.COPY_RUN_STATE_RUNNING
QUICK_JAVA = {"keelman.plugin.jvm.options": "-XX:TieredStopAtLevel=1"}
"""For slots that live for seconds: their virtual machines compile code once, and not again to run faster."""


@dataclass
class Run:
    """One copy run as the Spark side sees it."""

    ticket: tickets.StartTicket
    worker: str
    state: Any = FENCED
    confirmed: list[tuple[bytes, bytes]] | None = None
    cut: str = ""
    limits: list[tickets.Limits] = field(default_factory=list)


@dataclass
class LinkSide(WorkerLinkServiceServicer):
    """Takes tickets, fences at once, runs when confirmed, ends when drained; fails runs on a test's command."""

    runs: dict[str, Run] = field(default_factory=dict)
    renewals: dict[str, int] = field(default_factory=dict)
    log_levels: dict[str, dict[str, str]] = field(default_factory=dict)
    links: dict[str, asyncio.Queue[Any]] = field(default_factory=dict)
    greetings: dict[str, Any] = field(default_factory=dict)
    slow: bool = False  # fences only on a test's command
    deaf: bool = False  # receives no more orders, as when a link breaks under them
    heard_nothing: int = 0  # orders that arrived meanwhile
    problem: str = ""  # the reason why it has no Spark

    def of(self, connector: str, task: int = 0, state: Any = RUNNING) -> list[Run]:
        """The runs of a task in a state."""
        rs = [r for r in self.runs.values() if (r.ticket.connector, r.ticket.task) == (connector, task)]
        return [r for r in rs if r.state == state]

    def fail(self, run: Run, *, retriable: bool, trace: str = "", reason: str = "TASK_FAILED") -> None:
        """Reports that a run has failed."""
        self._tell(run, FAILED, reason=reason, message="as told", trace=trace, retriable=retriable)

    def fence(self, run: Run) -> None:
        """Reports that a run has fenced its predecessor."""
        self._tell(run, FENCED)

    def idle(self, run: Run, watch: wire_watch.Watch) -> None:
        """Reports that a run has nothing to copy."""
        self._tell(run, RUNNING, watch=watch)

    def copies(self, run: Run, **fields: Any) -> None:
        """Reports that a run copies, or copies again; `fields` are further fields of the update."""
        self._tell(run, RUNNING, **fields)

    def stranger(self, worker: str, like: Run) -> Run:
        """A run of the worker that the worker has no record of."""
        ticket = tickets.StartTicket(run_uid="stranger", connector="stranger", task=like.ticket.task)
        self.runs["stranger"] = Run(ticket, worker, RUNNING)
        return self.runs["stranger"]

    def break_link(self, worker: str) -> None:
        """Ends the link; the worker reconnects, and its runs continue."""
        self.links[worker].put_nowait(None)

    def _tell(self, run: Run, state: Any, **fields: Any) -> None:
        run.state = state
        update = orders.RunUpdate(run_uid=run.ticket.run_uid, state=state, **fields)
        if run.worker in self.links:
            self.links[run.worker].put_nowait(wire.OpenLinkResponse(update=update))

    async def OpenLink(self, requests: Any, context: Any) -> None:
        """One link of one worker."""
        first = await anext(aiter(requests))
        worker = first.greeting.worker_id
        mine = [r for r in self.runs.values() if r.worker == worker and r.state not in (ENDED, FAILED)]
        before = self.greetings.get(worker)
        if before is None or before.incarnation != first.greeting.incarnation:
            for run in mine:
                run.state = ENDED
            mine = []
        self.greetings[worker] = first.greeting
        out: asyncio.Queue[Any] = asyncio.Queue()
        self.links[worker] = out
        runs = [orders.RunUpdate(run_uid=r.ticket.run_uid, state=r.state) for r in mine]
        await context.write(wire.OpenLinkResponse(welcome=wire.LinkWelcome(runs=runs)))

        async def hear() -> None:
            async for message in requests:
                if message.WhichOneof("message") == "renewal":
                    self.renewals[worker] = self.renewals.get(worker, 0) + 1
                    self.log_levels[worker] = dict(message.renewal.log_levels)
                    out.put_nowait(wire.OpenLinkResponse(renewed=wire.LeaseRenewed(problem=self.problem)))
                elif self.deaf:
                    self.heard_nothing += 1
                else:
                    self._order(worker, message.order)

        async def speak() -> None:
            while (message := await out.get()) is not None:
                await context.write(message)

        try:
            await first_of(hear(), speak())
        finally:
            if self.links.get(worker) is out:
                del self.links[worker]

    def _order(self, worker: str, order: orders.RunOrder) -> None:
        kind = order.WhichOneof("order")
        if kind == "start":
            run = self.runs[order.run_uid] = Run(order.start, worker)
            if not self.slow:
                self.fence(run)
            return
        run = self.runs[order.run_uid]
        if kind == "confirm":
            run.confirmed = [(o.key, o.value) for o in order.confirm.offsets]
            self._tell(run, RUNNING)
        elif kind == "limits":
            run.limits.append(order.limits)
        elif run.state not in (ENDED, FAILED):
            run.cut = order.cut.reason
            self._tell(run, ENDED)


@contextlib.asynccontextmanager
async def link_side(port: int = 0) -> AsyncIterator[tuple[LinkSide, str]]:
    """Serves the link, on a free port if none is given; yields it and its address."""
    side = LinkSide()
    port = port or free_ports(1)[0]
    service = RpcService("keelman.api.copy.v1.WorkerLinkService", add_WorkerLinkServiceServicer_to_server, side)
    async with serve(service, port=port, grace_seconds=0.1):
        yield side, f"127.0.0.1:{port}"


@dataclass
class WorkerProcess:
    """One worker process; started as often as a test likes."""

    folder: Path
    bootstrap: str
    group: str
    spark: str
    extra: dict[str, str] = field(default_factory=dict)
    port: int = 0
    flags: tuple[str, ...] = ()
    child: asyncio.subprocess.Process | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port = self.port or free_ports(1)[0]
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def id(self) -> str:
        """Connect's worker_id."""
        return f"127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        """All its output."""
        return (self.folder / "output.log").read_text(errors="replace")

    def properties(self) -> dict[str, str]:
        """The worker's properties."""
        return {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": f"{self.group}-configs",
            "offset.storage.topic": f"{self.group}-offsets",
            "status.storage.topic": f"{self.group}-status",
            "offset.storage.partitions": "3",
            "status.storage.partitions": "2",
            "listeners": f"http://127.0.0.1:{self.port}",
            **(QUICK_JAVA if "plugin.path" in self.extra else {}),
            **self.extra,
        }

    async def spawn(self) -> None:
        """Starts the process without waiting."""
        file = self.folder / "worker.properties"
        file.write_text("".join(f"{k}={v}\n" for k, v in self.properties().items()))
        command = [sys.executable, "-m", "keelman.worker", "run", "--properties-file", str(file)]
        command += ["--spark-address", self.spark, "--health-socket", str(self.folder / "h.sock"), *self.flags]
        plain = {k: v for k, v in os.environ.items() if not k.startswith("KEELMAN_WORKER_")} | dict(self.env)
        with (self.folder / "output.log").open("ab") as output:
            self.child = await asyncio.create_subprocess_exec(
                *tethered(command), stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=plain
            )

    async def start(self) -> WorkerProcess:
        """Starts it and waits until it is SERVING."""
        await self.spawn()
        try:
            await eventually(self._serving_or_ended, what="the worker serves")
        except AssertionError as error:
            raise AssertionError(self.output[-4000:]) from error
        assert self.child is not None
        assert self.child.returncode is None, self.output[-4000:]
        return self

    async def _serving_or_ended(self) -> bool:
        assert self.child is not None
        return self.child.returncode is not None or await is_serving(f"unix:{self.folder / 'h.sock'}")

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Signals it and waits; its exit code."""
        assert self.child is not None
        return await ended(self.child, number)

    async def kill(self) -> None:
        """Kills it if it runs."""
        if self.child is not None:
            await ended(self.child, signal.SIGKILL)

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Sends one REST request.

        No TLS: certificates take a client 30 ms of processor, and tests send 20 requests a second.
        """
        async with httpx.AsyncClient(timeout=300, trust_env=False, verify=False) as client:
            return await client.request(method, f"http://127.0.0.1:{self.port}{path}", json=body, **options)

    async def states(self, name: str) -> list[str]:
        """The connector's state, then its tasks'; empty if it does not exist."""
        answer = await self.ask("GET", f"/connectors/{name}/status")
        if answer.status_code != 200:
            return []
        status = answer.json()
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    async def reaches(self, name: str, *states: str, seconds: float = 300.0) -> None:
        """Waits for these states."""

        async def there() -> bool:
            return await self.states(name) == list(states)

        try:
            await eventually(there, seconds=seconds, what=f"{name} is {states}")
        except AssertionError as error:
            now = (await self.ask("GET", f"/connectors/{name}/status")).text
            raise AssertionError(f"{error}; now {now}\n{self.output[-3000:]}") from error


async def ended(child: asyncio.subprocess.Process, number: int) -> int:
    """Signals a child that may have ended, and waits; its exit code."""
    if child.returncode is None:
        child.send_signal(number)
    async with asyncio.timeout(300):
        return await child.wait()


def survivors(rows: Sequence[Row]) -> ConfigState:
    """The state that a worker would read from the config topic after compaction: each key's newest record, in order."""
    newest = {row.key: row for row in rows}
    state = ConfigState()
    for row in sorted(newest.values(), key=lambda row: row.offset):
        state.apply(row.key.decode(), row.value, row.offset)
    return state


@contextlib.asynccontextmanager
async def workers(*processes: WorkerProcess) -> AsyncIterator[None]:
    """Starts all, ends all."""
    try:
        for process in processes:
            await process.start()
        yield
    finally:
        for process in processes:
            if process.child is not None and process.child.returncode is None:
                process.child.kill()
                await process.child.wait()
