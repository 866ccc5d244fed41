"""The users of a simulated plane: each makes one change after another to its own resources.

A user records which changes were acknowledged. A request without an answer is sent again, to any state service, with
the same request id.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.api.connect.v1 import worker_cluster_service_pb2 as workers_pb
from keelman.api.node.v1 import node_service_pb2 as nodes_pb
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, KeelmanError, NotFound, Unavailable
from keelman.state.resources.snapshot import NODE, WORKER_CLUSTER
from simulation.plane import StateService, World

CALL_SECONDS = 4.0
TRIES = 6


class InDoubt(Exception):
    """No state service answered whether the change was done."""


@dataclass(slots=True)
class User:
    """Sends requests."""

    world: World
    chance: random.Random
    name: str
    states: list[StateService]
    _requests: int = 0

    async def read(self, api: str, method: str, request: Any) -> Any:
        """Returns the answer of any state service to a read. Raises InDoubt, or the error of a refusal."""
        return await self._tried(api, method, request)

    async def write(self, api: str, method: str, request: Any) -> Any:
        """Returns the answer to a change. Raises InDoubt, or the error of a refusal."""
        self._requests += 1
        request.request_id = f"{self.name}-{self._requests}"
        return await self._tried(api, method, request)

    async def _tried(self, api: str, method: str, request: Any) -> Any:
        for _ in range(TRIES):
            state = self.chance.choice(self.states)
            if self.chance.random() < 0.05:  # a proxy in between sends the request twice
                self.world.loop.create_task(self._unheard(state, api, method, request))
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    return await state.call(self.name, api, method, request)
            except (TimeoutError, ConnectionRefusedError, Unavailable):
                await asyncio.sleep(self.chance.random())
        raise InDoubt

    async def _unheard(self, state: StateService, api: str, method: str, request: Any) -> None:
        await asyncio.sleep(self.chance.random() * 3.0)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await state.call(self.name, api, method, request)
        except (TimeoutError, ConnectionRefusedError, KeelmanError):
            pass


@dataclass(slots=True)
class ClusterUser(User):
    """A user of one worker cluster."""

    cluster: str = ""
    most: int = 3
    """The largest number of its workers."""
    selector: str = ""
    """The disk that its workers' nodes must have; empty: any."""
    is_there: bool = False

    async def run(self) -> None:
        """Changes the cluster while there are disturbances."""
        await self.ask(("STOPPED", 1, ""))
        while self.world.rules.is_disturbed:
            await asyncio.sleep(self.chance.random() * 12.0)
            await self.once()

    async def once(self) -> None:
        """Makes one change, based on the state that the user reads."""
        try:
            seen = await self._seen()
        except InDoubt:
            return
        if seen is None:
            await self.ask(("STOPPED", self.chance.randint(1, self.most), ""))
            return
        goal, count, x, etag = seen
        match self.chance.choice(("start", "start", "stop", "count", "roll", "restart", "delete")):
            case "start":
                request: Any = workers_pb.StartWorkerClusterRequest(name=self.cluster, etag=etag)
                await self._change("StartWorkerCluster", request, ("RUNNING", count, x))
            case "stop":
                request = workers_pb.StopWorkerClusterRequest(name=self.cluster, etag=etag)
                await self._change("StopWorkerCluster", request, ("STOPPED", count, x))
            case "count":
                request = workers_pb.UpdateWorkerClusterRequest(name=self.cluster, etag=etag)
                request.spec.count = self.chance.randint(1, self.most)
                request.update_mask.paths.append("count")
                await self._change("UpdateWorkerCluster", request, (goal, request.spec.count, x))
            case "roll":
                request = workers_pb.UpdateWorkerClusterRequest(name=self.cluster, etag=etag)
                request.spec.properties["x"] = str(self.chance.randint(1, 3))
                request.update_mask.paths.append("properties")
                await self._change("UpdateWorkerCluster", request, (goal, count, request.spec.properties["x"]))
            case "restart":
                request = workers_pb.RestartWorkerClusterRequest(name=self.cluster, etag=etag)
                await self._change("RestartWorkerCluster", request, (goal, count, x))
            case _ if self.chance.random() < 0.3:
                request = workers_pb.DeleteWorkerClusterRequest(name=self.cluster, etag=etag)
                await self._change("DeleteWorkerCluster", request, None)

    async def ask(self, expected: tuple[str, int, str]) -> None:
        """Creates the cluster."""
        request = workers_pb.CreateWorkerClusterRequest(name=self.cluster)
        request.spec.broker_cluster, request.spec.count = "kafka", expected[1]
        if self.selector:
            request.spec.node_selector["disk"] = self.selector
        await self._change("CreateWorkerCluster", request, expected)

    async def _seen(self) -> tuple[str, int, str, str] | None:
        request = workers_pb.GetWorkerClusterRequest(name=self.cluster)
        try:
            worker_cluster = (await self.read("workers", "GetWorkerCluster", request)).worker_cluster
        except NotFound:
            return None
        requested = self.world.rules.asked[WORKER_CLUSTER, self.cluster]
        goals = [
            item[0]
            for item in requested
            if item is not None and item[1:] == (worker_cluster.spec.count, worker_cluster.spec.properties["x"])
        ]
        goal = goals[0] if len(goals) == 1 else ""
        return goal, worker_cluster.spec.count, worker_cluster.spec.properties["x"], worker_cluster.etag

    async def _change(self, method: str, request: Any, expected: Any) -> None:
        """Makes one change and tells the rules which outcomes are possible before the acknowledgement and after it."""
        rules, key = self.world.rules, (WORKER_CLUSTER, self.cluster)
        before = set(rules.asked.setdefault(key, {None}))
        if expected is None:
            outcomes: set[Any] = {None}
        elif expected[0]:
            outcomes = {expected}
        else:  # the user does not know whether the goal is RUNNING
            outcomes = {(goal, *expected[1:]) for goal in ("RUNNING", "STOPPED")}
        rules.asked[key] = before | outcomes
        words = f"{method} {self.cluster} {expected}"
        rules.note("asked", words)
        try:
            answer = await self.write("workers", method, request)
        except InDoubt:
            rules.note("in-doubt", words)
        except (Conflict, FailedPrecondition, AlreadyExists, NotFound) as error:
            rules.asked[key] = before
            rules.note("refused", f"{words}: {error.reason}")
        else:
            # A change without effect leaves the etag as it was: an earlier request without an answer may still be done
            # later.
            same = method != "CreateWorkerCluster" and answer.worker_cluster.etag == request.etag
            rules.asked[key] = outcomes | (before if same else set())
            rules.note("acknowledged", words)


@dataclass(slots=True)
class Operator(User):
    """Cordons and drains nodes."""

    nodes: list[str] = field(default_factory=list)

    async def run(self) -> None:
        """Closes and opens nodes while there are disturbances."""
        while self.world.rules.is_disturbed:
            await asyncio.sleep(5.0 + self.chance.random() * 15.0)
            node = self.chance.choice(self.nodes)
            await self.mark(node, self.chance.choice(("CordonNode", "DrainNode", "UncordonNode", "UncordonNode")))

    async def mark(self, node: str, method: str) -> None:
        """Marks one node, whatever it was before."""
        marks = {"CordonNode": (True, None), "DrainNode": (True, True), "UncordonNode": (False, False)}[method]
        rules, key = self.world.rules, (NODE, node)
        before = set(rules.asked.setdefault(key, {(False, False)}))
        outcomes = {(marks[0], drains if marks[1] is None else marks[1]) for _, drains in before}
        rules.asked[key] = before | outcomes
        try:
            await self.write("nodes", method, getattr(nodes_pb, f"{method}Request")(name=node))
        except InDoubt:
            rules.note("in-doubt", f"{method} {node}")
        except (Conflict, NotFound) as error:
            rules.asked[key] = before
            rules.note("refused", f"{method} {node}: {error.reason}")
        else:
            rules.asked[key] = outcomes | (before if self._may_come_late(before) else set())
            rules.note("acknowledged", f"{method} {node}")

    def _may_come_late(self, before: set[Any]) -> bool:
        """Whether an earlier request without an answer may be done after this one."""
        return len(before) > 1

    async def label(self, node: str, disk: str) -> None:
        """Sets the label of a node."""
        request = nodes_pb.UpdateNodeRequest(name=node)
        request.spec.labels["disk"] = disk
        request.update_mask.paths.append("labels")
        await self.write("nodes", "UpdateNode", request)

    async def kafka(self) -> None:
        """Creates the broker cluster that all worker clusters use."""
        request = brokers_pb.CreateBrokerClusterRequest(name="kafka")
        request.spec.external.bootstrap_servers = "kafka:9092"
        await self.write("brokers", "CreateBrokerCluster", request)
