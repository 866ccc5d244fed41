"""The Spark service as a process, and a worker's end of the link."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import psutil

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.copy_run_service_pb2 import GetCopyRunRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.api.copy.v1.run_order_pb2 import Cut, Drain, RunOrder, RunUpdate
from keelman.api.copy.v1.ticket_pb2 import Confirmation, Plugin, StartTicket
from keelman.api.copy.v1.worker_link_service_pb2 import (
    LeaseRenewal,
    LinkWelcome,
    OpenLinkRequest,
    SlotUsage,
    WorkerGreeting,
)
from keelman.api.copy.v1.worker_link_service_pb2_grpc import WorkerLinkServiceStub
from keelman.rpc.channels import channel
from keelman.rpc.health import is_serving
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.places import with_tests

NUMBERS = itertools.count(1)
START_SECONDS = 300.0


class Spark:
    """One service process and everything below it."""

    def __init__(self, folder: Path, **flags: object) -> None:
        self.port = free_ports(1)[0]
        self.address = f"127.0.0.1:{self.port}"
        self.log = folder / "spark.log"
        fields = {
            "port": self.port,
            "work_folder": folder / "work",
            "lease_seconds": 10,
            "slots_per_worker": 2,
            **flags,
        }
        environment = with_tests()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.spark", *(f"{k}={v}" for k, v in fields.items())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self.seen: set[psutil.Process] = set()

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    async def serving(self) -> None:
        def alive() -> None:
            assert self.process.poll() is None, f"the service ended:\n{self.text()}"

        async def ready() -> bool:
            alive()
            return await is_serving(self.address)

        await eventually(ready, seconds=START_SECONDS, what=f"the service serves; log:\n{self.text()}")

    def below(self) -> set[psutil.Process]:
        """All processes that this service ever had, as far as they were observed."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))
        return self.seen

    def jvm(self) -> psutil.Process:
        return next(p for p in self.below() if p.is_running() and p.name() == "java")

    def kill(self) -> None:
        self.below()
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)

    async def nothing_left(self, seconds: float = 15) -> None:
        """Waits until every observed process below the service has ended."""

        def gone() -> bool:
            return not [p for p in self.seen if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

        def quiet() -> bool:
            try:
                return gone()
            except psutil.NoSuchProcess:
                return False

        await eventually(quiet, seconds=seconds, what=f"no process is left; log:\n{self.text()}")


class Worker:
    """A worker's end of one link."""

    def __init__(self, spark: Spark, call: Any, runs: CopyRunServiceStub, name: str, incarnation: str) -> None:
        self.spark, self.name, self.incarnation = spark, name, incarnation
        self.updates: list[RunUpdate] = []
        self.welcome: LinkWelcome | None = None
        self.renewed = 0
        self.usage = SlotUsage()
        self.problems: list[str] = []  # the reported reasons for a missing Spark; empty while there was one
        self.renewing = True
        self.log_levels: dict[str, str] = {}
        self.ended: list[Exception] = []
        self._call, self._runs = call, runs
        self._outgoing: asyncio.Queue[OpenLinkRequest] = asyncio.Queue()

    async def read(self) -> None:
        async for message in self._call:
            match message.WhichOneof("message"):
                case "welcome":
                    self.welcome = message.welcome
                case "update":
                    self.updates.append(message.update)
                case "renewed":
                    self.renewed += 1
                    self.usage = message.renewed.usage
                    self.problems.append(message.renewed.problem)

    async def write(self) -> None:
        greeting = WorkerGreeting(worker_cluster="wc", worker_id=self.name, incarnation=self.incarnation)
        await self._call.write(OpenLinkRequest(greeting=greeting))
        due = time.monotonic()
        while True:
            message = OpenLinkRequest(renewal=LeaseRenewal())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    message = await self._outgoing.get()
            if message.HasField("order"):
                await self._call.write(message)
            if time.monotonic() >= due:
                due = time.monotonic() + 0.5
                if self.renewing:
                    renewal = LeaseRenewal(log_levels=self.log_levels)
                    await self._call.write(OpenLinkRequest(renewal=renewal))

    async def until_it_ends(self, work: Awaitable[None]) -> None:
        """A link that the service ends is not this side's error; the reason is stored."""
        try:
            await work
        except Exception as error:
            self.ended.append(error)

    async def welcomed(self) -> None:
        try:
            await eventually(lambda: self.welcome is not None or self.ended, what="the welcome")
            assert self.welcome is not None, "the link ended before the welcome"
        except AssertionError as error:
            raise AssertionError(f"{error}; ended by: {self.ended}; log:\n{self.spark.text()}") from None

    def order(self, uid: str, **order: Any) -> None:
        self._outgoing.put_nowait(OpenLinkRequest(order=RunOrder(run_uid=uid, **order)))

    def start(self, folder: Path, *, plugin: Path | None = None, connector: str = "", **config: str) -> str:
        number = next(NUMBERS)
        uid = f"run-{number}"
        ticket = StartTicket(
            run_uid=uid,
            worker_cluster="wc",
            worker_id=self.name,
            connector=connector or f"connector-{number}",
            connector_config={"file": str(folder / uid), **config},
            plugin=Plugin(folder=str(plugin)) if plugin else None,
        )
        self.order(uid, start=ticket)
        return uid

    def confirm(self, uid: str) -> None:
        self.order(uid, confirm=Confirmation())

    def drain(self, uid: str) -> None:
        self.order(uid, drain=Drain())

    def cut(self, uid: str, reason: str = "WITHDRAWN") -> None:
        self.order(uid, cut=Cut(reason=reason))

    async def reached(self, uid: str, state: int, seconds: float = 300.0) -> RunUpdate:
        name = states.CopyRunState.Name(state)  # type: ignore[arg-type]

        def found() -> RunUpdate | None:
            return next((u for u in self.updates if u.run_uid == uid and u.state == state), None)

        try:
            return await eventually(found, seconds=seconds, what=f"{uid} {name}")
        except AssertionError as error:
            told = [(states.CopyRunState.Name(u.state), u.reason) for u in self.updates if u.run_uid == uid]
            raise AssertionError(f"{error}; told: {told}; log:\n{self.spark.text()}") from None

    async def running(self, folder: Path, **config: Any) -> str:
        """Starts a run and brings it to RUNNING."""
        uid = self.start(folder, **config)
        await self.reached(uid, states.COPY_RUN_STATE_FENCED)
        self.confirm(uid)
        await self.reached(uid, states.COPY_RUN_STATE_RUNNING)
        return uid

    async def get(self, uid: str) -> states.CopyRun:
        return (await self._runs.GetCopyRun(GetCopyRunRequest(uid=uid))).copy_run

    def slot_of(self, uid: str) -> str:
        """The slot of the run in the last update that names one."""
        return next(u.slot for u in reversed(self.updates) if u.run_uid == uid and u.slot)

    def slot_process(self, uid: str) -> psutil.Process:
        """The process of the run's slot, from the service's log."""
        slot = self.slot_of(uid)
        line = next(line for line in self.spark.text().splitlines() if "slot_attached" in line and slot in line)
        return psutil.Process(int(line.split("pid=")[1].split()[0]))


@contextlib.asynccontextmanager
async def worker(spark: Spark, name: str, incarnation: str = "1") -> AsyncIterator[Worker]:
    """A linked, welcomed worker; the link ends with the block."""
    async with channel(spark.address) as link, asyncio.TaskGroup() as tasks:
        new_worker = Worker(spark, WorkerLinkServiceStub(link).OpenLink(), CopyRunServiceStub(link), name, incarnation)
        loops = [tasks.create_task(new_worker.until_it_ends(work)) for work in (new_worker.read(), new_worker.write())]
        try:
            await new_worker.welcomed()
            yield new_worker
        finally:
            for loop in loops:
                loop.cancel()
