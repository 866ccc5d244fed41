"""Builds the agent's parts and runs them. Its workloads go on when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from keelman.agent.api import AgentApi
from keelman.agent.assignments import Assignments
from keelman.agent.commands import Command, command_table
from keelman.agent.figures import Figures
from keelman.agent.launcher import Launcher
from keelman.agent.limits import make_limiter
from keelman.agent.plugins import Plugins, downloads
from keelman.agent.reporter import Reporter
from keelman.agent.secrets import SecretFiles
from keelman.agent.session import Sessions
from keelman.agent.settings import Settings
from keelman.agent.shipping.shipping import Shipping
from keelman.agent.supervisor import Supervisor
from keelman.api.node.v1 import agent_service_pb2
from keelman.api.node.v1.agent_service_pb2_grpc import add_AgentServiceServicer_to_server
from keelman.api.node.v1.session_service_pb2 import Registration
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.rpc.channels import checked_peer, root_certificates
from keelman.rpc.server import Service, Tls, serve
from keelman.runtime.home import Home, private_folder, writable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of, supervise

log = get_logger()


async def run(settings: Settings, stop: asyncio.Event, *, commands: Mapping[str, Command] | None = None) -> None:
    """Runs the agent until `stop`, then leaves; the workloads go on and the next agent of this home adopts them.

    `commands` replaces what starts each kind of workload. Raises FailedPrecondition when another agent runs on the same
    home, InvalidArgument when that cannot be written and Unavailable when the port is taken, all before any workload
    was touched.
    """
    home, node, address = settings.folder, settings.node_name, settings.workload_address
    certificates = root_certificates("agent.state_ca", settings.state_ca)
    checked_peer(
        "agent.state_address", settings.state_address, ca="state_ca", certificates=certificates, trust=settings.trust
    )
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(lock(home))
        writable("agent.home", home.workloads)
        surroundings = settings.surroundings
        home = await asyncio.to_thread(surroundings.begin, home)
        writable("agent.home", home.socket("agent").parent, private=True)
        assignments, reporter = Assignments(home.assignments), Reporter()
        assignments.load()
        fetch = downloads(settings.state_address, certificates)
        plugins = Plugins(home.plugins, fetch, kept_seconds=settings.plugin_seconds)
        await asyncio.to_thread(plugins.begin)
        secrets = SecretFiles(home, surroundings.owner)
        shipping = Shipping(home, node, settings.shipping_limits)
        supervisor = Supervisor(
            home,
            Launcher(
                home,
                commands or command_table(settings.trust, secrets),
                grace_seconds=settings.grace_seconds,
                log_keeping=settings.log_keeping,
                surroundings=surroundings,
                needed=shipping.needed,
                limiter=await asyncio.to_thread(make_limiter, settings.limits, home, surroundings.user),
            ),
            assignments,
            reporter,
            plugins,
            unwell_seconds=settings.unwell_seconds,
            shipping=shipping,
        )
        sessions = Sessions(
            settings.state_address,
            registration(settings, node),
            reporter,
            supervisor.assign,
            Figures(home.root),
            on_secrets=secrets.take,
            certificates=certificates,
        )
        name = agent_service_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name
        health = await stack.enter_async_context(
            serve(
                Service(name, add_AgentServiceServicer_to_server, AgentApi(supervisor)),
                host=settings.host,
                port=settings.port,
                socket=settings.health_socket,
                tls=Tls.of("agent", settings.tls_certificate, settings.tls_key),
                trust=settings.trust,
                label="agent",
            )
        )
        supervisor.adopt()
        await health.ready()
        log.info(
            "ready", node=node, address=settings.address, node_address=address, home=str(home.root),
            workloads=len(supervisor.workloads()),
        )  # fmt: skip
        await first_of(stop.wait(), supervise(supervisor.run, sessions.run))


def registration(settings: Settings, node: str) -> Registration:
    """What this agent says of itself and of its host."""
    return Registration(
        node=node,
        agent_address=settings.address,
        node_address=settings.workload_address,
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        version=own_version(),
        incarnation=uuid.uuid4().hex,
    )


def own_version() -> str:
    """The installed version; "source" when keelman runs from a checkout that was not installed."""
    try:
        return version("keelman")
    except PackageNotFoundError:
        return "source"


@contextlib.contextmanager
def lock(home: Home) -> Iterator[None]:
    """Holds the home against other agents; the system lets go of it when this process ends, however that happens.

    Raises FailedPrecondition when another agent holds it and InvalidArgument when the home cannot be written.
    """
    path = home.agent_lock
    try:
        private_folder(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidArgument.of("agent.home", str(home.root), f"a folder that can be written ({error})") from None
    try:
        _take(descriptor, path, home)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, home: Home) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = path.read_text(encoding="ascii", errors="replace").strip()
        raise FailedPrecondition(
            f"another agent (pid {holder or 'unknown'}) runs on {home.root}: stop it, or set another agent.home",
            reason="HOME_IN_USE",
            metadata={"home": str(home.root), "pid": holder},
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
