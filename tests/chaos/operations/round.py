"""One round: clients send requests, faults happen, the system comes to rest, and everything is judged."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from chaos.chaos_kafka import Topics
from chaos.operations.connectors import COUNTING, FAULTS, SOURCE_OF_FILE, Connectors
from chaos.operations.delivered import missing_or_doubled
from chaos.operations.faults import Faults
from chaos.operations.history import Operation, write
from chaos.operations.kept import END
from chaos.operations.legal_orders import Undecided, contradiction
from chaos.operations.requests import Requests
from chaos.operations.settled import config_topic, differences
from keelman.runtime.supervise import Siblings
from support.eventually import eventually
from support.worker.groups import Flow, Workers, feeding
from support.worker.rest import fresh_client

WORKERS, CLIENTS, FLOWS, PARTITIONS = 3, 7, 2, 2
SETTLE_SECONDS, LOOK_SECONDS = 60.0, 0.5
FAULT_SECONDS = 1.0, 4.0
LINES, LINES_SECONDS = 5, 0.1
ODD_LINES = 5
PROBLEM_WORDS = ("[error", "[critical", "Traceback")


@dataclass
class Round:
    """`violations` are reported as they are found."""

    seed: int
    seconds: float
    bootstrap: str
    spark: str
    folder: Path
    violations: list[str] = field(default_factory=list)
    settled_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.group = f"operations-{self.seed}"
        self.exactly_once = self.seed % 2 == 0
        support = "enabled" if self.exactly_once else "disabled"
        named = {"exactly_once_source_support": support}
        self.workers = Workers.of(self.folder, self.bootstrap, self.group, self.spark, WORKERS, **named)
        self.connectors = Connectors(self.group, self.folder)
        self.faults = Faults(self.workers, self.violation)
        self.requests = Requests(self.workers, self.connectors, self.faults, fresh_client(), self.violation)
        self.topics = Topics(self.bootstrap)

    def __str__(self) -> str:
        mode = "exactly once" if self.exactly_once else "at least once"
        told = [f"{len(self.requests.history)} operations, {self.faults.count} faults"]
        told += [f"settled after {self.settled_seconds:.1f} s", f"{len(self.violations)} violations"]
        return f"seed {self.seed}, {mode}: {', '.join(told)}"

    def violation(self, text: str) -> None:
        """Records a violation."""
        self.violations.append(text)
        print(f"  VIOLATION {text}", flush=True)

    async def run(self) -> None:
        """Runs to the end. Raises AssertionError if it does not get there; the answers are judged in any case."""
        try:
            await self._run()
        finally:
            self._judge()

    async def _run(self) -> None:
        flows = [Flow(self.folder, f"{self.group}-witness{number}") for number in range(FLOWS)]
        for topic in self.connectors.all_topics:
            await asyncio.to_thread(self.topics.create, topic, PARTITIONS)
        async with self.requests.http, self.workers.running():
            for flow in flows:
                await self.workers.begin(self.bootstrap, flow)
            async with feeding(*flows):
                await self._busy()
            await self._recover()
            await self._settle()
            for flow in flows:
                report = flow.judged()
                if not (report.clean if self.exactly_once else not report["lost"]):
                    self.violation(f"{flow.name}: {report}")
            delivered = missing_or_doubled(self.topics, self.connectors, exactly_once=self.exactly_once)
            for told in await asyncio.to_thread(list, delivered):
                self.violation(told)
            for number, worker in enumerate(self.workers.processes):
                if (code := await worker.end()) != 0:
                    self.violation(f"worker {number} ended with {code} in the end")

    def keep(self, folder: Path) -> None:
        """Keeps the history and the workers' logs."""
        shutil.rmtree(folder, ignore_errors=True)
        write(folder / "history.jsonl", self.requests.history)
        for number, log in self._logs():
            (folder / f"worker{number}.log").write_text(log)

    def _logs(self) -> list[tuple[int, str]]:
        """The logs of the workers that were started."""
        there = [(n, w) for n, w in enumerate(self.workers.processes) if w.child is not None]
        return [(number, worker.output) for number, worker in there]

    async def _busy(self) -> None:
        """Clients send requests while workers and tasks have their faults."""
        self.requests.begun = time.monotonic()
        end = self.requests.begun + self.seconds
        async with Siblings() as siblings:
            under_way = [siblings.start(self.faults.run(self._chance("faults"), end))]
            under_way += [siblings.start(self._faults(end)), siblings.start(self._lines(end))]
            for number in range(CLIENTS):
                chance = self._chance(f"client {number}")
                under_way.append(siblings.start(self.requests.client(number, chance, self.seconds)))
            for item in under_way:
                await item

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{what}/{self.seed}")

    async def _faults(self, end: float) -> None:
        chance = self._chance("faults")
        while time.monotonic() < end:
            self.connectors.order(chance.choice(FAULTS))
            await asyncio.sleep(chance.uniform(*FAULT_SECONDS))

    async def _lines(self, end: float) -> None:
        """Appends to the files that are read."""
        files = [self.connectors.input(w).open("ab") for w in self.connectors.of_class(SOURCE_OF_FILE)]
        count = 0
        while time.monotonic() < end:
            lines = b"".join(b"%d\n" % number for number in range(count, count + LINES))
            for file in files:
                file.write(lines)
                file.flush()
            count += LINES
            await asyncio.sleep(LINES_SECONDS)
        for file in files:
            file.close()

    async def _recover(self) -> None:
        """A connector that failed and does not recover by itself recovers by a restart.

        A connector that is deleted and created again reports only the topics that its new instance has used.
        """
        chance = self._chance("again")
        failing = self.connectors.full("failing-source")
        self.connectors.order("fail")
        await self.requests.ask("put", failing, self.connectors.config(failing, chance))
        await self.requests.ask("resume", failing)
        try:
            await eventually(lambda: self._failed(failing), seconds=SETTLE_SECONDS, every=LOOK_SECONDS)
        except AssertionError:
            self.violation(f"{failing} is to fail, and is told to be {self.requests.history[-1].answer}")
        self.connectors.order("none")
        await self.requests.ask("restart", failing, query="?includeTasks=true&onlyFailed=true")
        word = chance.choice(self.connectors.of_class(COUNTING))
        name = self.connectors.full(word)
        for topic in self.connectors.topics(word):
            await self._make_again(name, self.connectors.config(name, chance) | {"topic": topic}, chance)

    async def _failed(self, name: str) -> bool:
        item = await self.requests.ask("status", name)
        return item.status == 200 and [task["state"] for task in item.answer["tasks"]] == ["FAILED"]

    async def _make_again(self, name: str, config: dict[str, str], chance: random.Random) -> None:
        await self.requests.ask("delete", name, worker=chance.randrange(WORKERS))
        await self.requests.ask("create", name, {"name": name, "config": config}, worker=chance.randrange(WORKERS))
        used = [config["topic"]]
        try:
            await eventually(lambda: self._uses(name, used), seconds=SETTLE_SECONDS, every=LOOK_SECONDS)
        except AssertionError:
            told = self.requests.history[-1].answer
            self.violation(f"{name} was deleted and made again, and is not told to use {used} alone: {told}")

    async def _uses(self, name: str, topics: list[str]) -> bool:
        """Whether every worker reports exactly these topics as used by the connector."""
        requests = [await self.requests.ask("topics", name, worker=number) for number in range(WORKERS)]
        return all(request.status == 200 and request.answer[name]["topics"] == topics for request in requests)

    async def _settle(self) -> None:
        """Returns when the requested state is reached or the time is over; ends the history with the stored state."""
        begun = time.monotonic()
        results: list[str] = []
        try:
            await eventually(lambda: self._rests(results), seconds=SETTLE_SECONDS, every=LOOK_SECONDS)
        except AssertionError:
            for told in results:
                self.violation(f"not at rest: {told}")
        self.settled_seconds = time.monotonic() - begun
        config = await config_topic(self.bootstrap, self.group)
        for name in self.connectors.names:
            used = (await self.requests.ask("topics", name)).answer[name]["topics"]
            now = self.requests.now
            stored = {"config": config.connectors.get(name), "target": config.target(name), "topics": used}
            self.requests.history.append(Operation(END, name, None, now, now, 200, stored))

    async def _rests(self, results: list[str]) -> bool:
        """Whether there are no differences; `results` receives them."""
        try:
            results[:] = await differences(self.workers, self.bootstrap, self.spark, self.group, self.connectors.names)
        except (httpx.HTTPError, KeyError, ValueError) as error:
            results[:] = [f"no answer that can be read: {error!r}"]
        return not results

    def _judge(self) -> None:
        for name in self.connectors.names:
            try:
                actual_contradiction = contradiction(self.requests.history, name)
            except Undecided as error:
                print(f"  NOT JUDGED {name}: {error}", flush=True)
                continue
            if actual_contradiction:
                self.violation(f"{name}: {actual_contradiction}")
        for number, log in self._logs():
            lines = [line for line in log.splitlines() if any(word in line for word in PROBLEM_WORDS)]
            for line in [line for line in lines if "mock failure" not in line][:ODD_LINES]:
                self.violation(f"worker {number} logs {line[:400]}")
