"""`keelman up`: the whole system on one machine, as separate processes that this process starts, watches and drains."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ClusterState, ManagedBrokers
from keelman.api.node.v1.agent_service_pb2 import DrainRequest
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.node_pb2 import NodeState
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway, connect
from keelman.cli.client.system import Process, System, SystemService, running_system
from keelman.cli.machine.leftovers import kill_workloads, stop_workloads
from keelman.cli.machine.options import NO_PORTS, UpOptions, keep_node
from keelman.cli.machine.services import (
    READY_SECONDS,
    RunningService,
    ServicePlan,
    check_ports,
    free_settings,
    last_words,
)
from keelman.cli.waiting import until
from keelman.model.errors import AlreadyExists, FailedPrecondition, KeelmanError, NotFound, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.health import is_serving
from keelman.runtime.home import Home, writable
from keelman.runtime.java import installation as java
from keelman.runtime.java import maven
from keelman.runtime.processes.lock_file import take_lock
from keelman.runtime.supervise import Siblings, deadline, first_of

BROKER_CLUSTER = "default"
BROKER_SECONDS = 900.0
"""The longest start of the brokers, with a second one after `broker.start_seconds`."""
DRAIN_SECONDS = 90.0
GRACE_SECONDS = 150.0
POLL_SECONDS = 0.1
UP = "up"
"""The command that holds the home's lock while a system runs."""


Stage: TypeAlias = Literal["step", "note", "serving", "ready", "failed"]


class Report(Protocol):
    """Shows the progress of a start: on a terminal, or to the process that waits for a detached one."""

    def __call__(self, stage: Stage, text: str = "") -> None:
        """`stage` is step (the present action or wait), note (stays relevant after the start), serving (all services
        answer; the broker may still be starting) or ready (all parts run)."""


async def run(options: UpOptions, report: Report, stop: asyncio.Event) -> None:
    """Runs the system until `stop`, then drains it. On cancellation it kills every process of this home.

    Raises FailedPrecondition if this home is up already or Java is missing, InvalidArgument for illegal settings,
    Unavailable for ports in use and for a service or broker that does not come up; no process is left then.
    """
    report("step", "checking Java and ports")
    installation = await asyncio.to_thread(java.find)
    with lock(options.home, UP):
        # Only under the lock: the search holds the ports that it finds, and writes down the ports of this home.
        ports = free_settings(options.home, partial(report, "note")) if options.free_ports else NO_PORTS
        plans = options.plans(ports)
        check_ports(plans)
        if options.broker:
            await first_of(
                maven.jars(maven.Lock.read(maven.KAFKA_BROKER), progress=partial(report, "step")), stop.wait()
            )
        if stop.is_set():
            return
        os.environ.setdefault("JAVA_HOME", str(installation.home))
        try:
            await _live(options, plans, report, stop)
        except asyncio.CancelledError:
            await asyncio.to_thread(kill_workloads, options.home)
            raise
        finally:
            options.home.system.unlink(missing_ok=True)


async def _live(options: UpOptions, plans: Mapping[str, ServicePlan], report: Report, stop: asyncio.Event) -> None:
    services: dict[str, RunningService] = {}
    ready = False

    def write_system(*, is_ready: bool = False) -> None:
        nonlocal ready
        ready = ready or is_ready
        _system(options.home, plans, services, ready=ready).write(options.home)

    for name, plan in plans.items():
        services[name] = RunningService(plan, write_system, partial(report, "step"))

    async def come_up() -> None:
        await _serving(services, report)
        keep_node(options.home, plans["agent"].settings.node_name)
        write_system()
        report("serving")
        if options.broker:
            await _broker(plans, report)
        write_system(is_ready=True)
        report("ready")

    async with Siblings() as siblings:
        failure: Exception | None = None
        try:
            for running in services.values():
                siblings.start(running.keep(), name=running.plan.name)
            try:
                await first_of(come_up(), stop.wait())
                await stop.wait()
            except Exception as error:
                failure = error
            await _drain(options.home, services, report)
        except asyncio.CancelledError:
            for running in services.values():
                running.kill()
            raise
        if failure is not None:
            raise failure


async def _serving(services: Mapping[str, RunningService], report: Report) -> None:
    """Waits until every service answers its health check."""
    for name, running in services.items():
        report("step", f"starting {name}")
        error = Unavailable(f"{name} did not get ready in {READY_SECONDS:.0f} s: {last_words(running.plan.log)}")
        async with deadline(READY_SECONDS, error):
            await until(partial(_is_ready, running), every=POLL_SECONDS / 2)
        running.was_ready = True


async def _is_ready(running: RunningService) -> bool:
    if running.failure is not None:
        raise running.failure
    return running.process.alive and await is_serving(running.plan.address, timeout_seconds=1.0)


async def _broker(plans: Mapping[str, ServicePlan], report: Report) -> None:
    """Creates the broker cluster if it does not exist, and waits until it runs unless a user has stopped it."""
    node = plans["agent"].settings.node_name
    async with connect(plans["state"].address) as gateway:  # the gateway may require a token
        report("step", f"waiting for node {node}")
        async with deadline(
            READY_SECONDS, Unavailable(f"node {node} did not register: {last_words(plans['agent'].log)}")
        ):
            await until(lambda: _online(gateway, node), every=POLL_SECONDS)
        try:
            cluster = await gateway.get(kinds.BROKER_CLUSTERS, BROKER_CLUSTER)
        except NotFound:
            spec = BrokerClusterSpec(managed=ManagedBrokers(nodes=[node]))
            with contextlib.suppress(AlreadyExists):
                await gateway.create(kinds.BROKER_CLUSTERS, BROKER_CLUSTER, spec)
            cluster = await gateway.get(kinds.BROKER_CLUSTERS, BROKER_CLUSTER)
        stopped = (ClusterState.CLUSTER_STATE_STOPPED, ClusterState.CLUSTER_STATE_STOPPING)
        report("step", f"starting broker cluster {BROKER_CLUSTER}")
        end = asyncio.get_running_loop().time() + BROKER_SECONDS
        while cluster.status.state not in (ClusterState.CLUSTER_STATE_RUNNING, *stopped):
            if asyncio.get_running_loop().time() > end:
                reason = cluster.status.message or "no reason is known"
                raise Unavailable(
                    f"broker cluster {BROKER_CLUSTER} does not run after {BROKER_SECONDS:.0f} s: {reason}"
                )
            if cluster.status.message:
                report("step", f"broker cluster {BROKER_CLUSTER}: {cluster.status.message}")
            await asyncio.sleep(POLL_SECONDS)
            cluster = await gateway.get(kinds.BROKER_CLUSTERS, BROKER_CLUSTER)


async def _online(gateway: Gateway, node: str) -> bool:
    try:
        resource = await gateway.get(kinds.NODES, node)
    except (NotFound, Unavailable):
        return False
    return bool(resource.status.state == NodeState.NODE_STATE_ONLINE)


async def _drain(home: Home, running: Mapping[str, RunningService], report: Report) -> None:
    """Stops workloads, then services, then by their records the workloads that the agent did not stop."""
    agent = running["agent"]
    if agent.process.alive and agent.was_ready:
        report("step", "stopping workers, Spark service and brokers")
        try:
            async with channel(agent.plan.address) as link:
                stub: Any = AgentServiceStub(link)
                await stub.Drain(DrainRequest(), timeout=DRAIN_SECONDS)
        except KeelmanError as error:
            report("step", f"the agent could not stop its workloads ({error.message}): stopping them directly")
    for name in ("agent", "gateway", "state"):
        report("step", f"stopping {name}")
        if not await running[name].stop():
            report("step", f"{name} did not end and was killed")
    for name in await stop_workloads(home):
        report("step", f"stopped {name}")


@contextlib.contextmanager
def lock(home: Home, command: str) -> Iterator[None]:
    """Holds the home's lock for a command, `up` or `down`. Raises FailedPrecondition if another process holds it,
    InvalidArgument if the home cannot be written."""
    writable("home", home.root, home.log("up").parent)
    with home.lock.open("a+") as file:
        me = {"command": command, **asdict(Process.of(os.getpid()))}
        if take_lock(file, json.dumps(me) + "\n"):
            system = running_system(home)
            where = f", gateway at {system.gateway}" if system else ""
            raise FailedPrecondition(
                f"keelman is already running with home {home.root}{where}: stop it with `keelman down`, "
                "or give another --home",
                reason="ALREADY_UP",
            )
        yield


def starting_up(home: Home) -> Process | None:
    """Returns the `keelman up` that holds the home's lock, even before it has written system.json; None for none."""
    if not home.lock.exists():
        return None
    with home.lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with contextlib.suppress(ValueError):  # it holds the lock, but has not written yet
                holder = json.loads(file.read())
                process = Process(holder["pid"], holder["start"])
                return process if holder["command"] == UP and process.alive else None
    return None


def _system(
    home: Home, plans: Mapping[str, ServicePlan], running: Mapping[str, RunningService], *, ready: bool
) -> System:
    web = plans["gateway"].settings
    return System(
        up=Process.of(os.getpid()),
        home=str(home.root),
        node=plans["agent"].settings.node_name,
        gateway=plans["gateway"].address,
        http=f"http://{web.http_host}:{web.http_port}",
        state=plans["state"].address,
        agent=plans["agent"].address,
        ready=ready,
        services=[SystemService(n, r.plan.address, str(r.plan.log), r.process) for n, r in running.items()],
    )
