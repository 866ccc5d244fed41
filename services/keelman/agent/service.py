"""Builds the agent's parts and runs them. Its workloads run on when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import psutil

from keelman.agent.api import AgentApi
from keelman.agent.assignments import Assignments
from keelman.agent.figures import Figures
from keelman.agent.plugins import NodePlugins, downloads
from keelman.agent.reporter import Reporter
from keelman.agent.session import StateSessions
from keelman.agent.settings import Settings
from keelman.agent.settling import Settling
from keelman.agent.shipping.bucket_keys import BucketKeys
from keelman.agent.shipping.shipping import Shipping, bucket_keys_file
from keelman.agent.supervisor import Supervisor
from keelman.agent.trust.broker_certificate import Certificate
from keelman.agent.trust.secrets import SecretFiles
from keelman.agent.trust.trust import AgentTrust
from keelman.agent.workloads.commands import Command
from keelman.agent.workloads.launcher import Launcher
from keelman.agent.workloads.limits import make_limiter
from keelman.agent.workloads.process_surroundings import Surroundings
from keelman.agent.workloads.secured import commands_for
from keelman.agent.workloads.turns import StartTurns
from keelman.api.node.v1.session_service_pb2 import NodeSecrets, Registration
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.rpc.credentials import Tls
from keelman.rpc.identity import IdentityKind
from keelman.rpc.membership import MemberFolder
from keelman.rpc.server import Health, RpcService, serve
from keelman.runtime.home import Home, private_folder, writable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.lock_file import take_lock
from keelman.runtime.processes.processors import processors
from keelman.runtime.supervise import first_of, supervise

log = get_logger()
FOLLOW_SECONDS = 1.0
LAST_REPORT_SECONDS = 3.0


async def run(settings: Settings, stop: asyncio.Event, *, commands: Mapping[str, Command] | None = None) -> None:
    """Runs the agent until `stop`, then leaves; the workloads run on and the next agent of this home adopts them,
    unless `drain_on_stop` has them stopped first.

    `commands` replaces the starters of each kind of workload. Raises FailedPrecondition when another agent runs on the
    same home, InvalidArgument when that cannot be written and Unavailable when the port is taken, all before any
    workload was touched.
    """
    home, node, address = settings.folder, settings.node_name, settings.workload_address
    trust = _trust(settings, node)
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(lock(home))
        writable("agent.home", home.workloads)
        surroundings = settings.surroundings
        home = await asyncio.to_thread(surroundings.begin, home)
        writable("agent.home", home.socket("agent").parent, private=True)
        assignments, reporter = Assignments(home.assignments), Reporter()
        assignments.load()
        plugins = NodePlugins(home.plugins, downloads(settings.state_address, trust.link), settings.plugin_seconds)
        await asyncio.to_thread(plugins.begin)
        secrets, bucket_keys = SecretFiles(home), BucketKeys(bucket_keys_file(home))
        shipping = Shipping(home, node, settings.shipping_limits, bucket_keys)
        certificate = _certificate(settings, home, trust, surroundings)
        table = commands or commands_for(
            settings.trust_of_workloads, secrets, settings.broker_data, certificate, settings.tenant_users
        )
        supervisor = Supervisor(
            home,
            await asyncio.to_thread(_launcher, settings, home, table, surroundings, shipping),
            assignments,
            reporter,
            plugins,
            unwell_seconds=settings.unwell_seconds,
            turns=StartTurns(settings.starts_at_once or 2 * processors()),
            shipping=shipping,
        )
        sessions = StateSessions(
            settings.state_address,
            registration(settings, node),
            reporter,
            supervisor.assign,
            Figures(home.root),
            _each(secrets.take, bucket_keys.take),
            trust.link,
        )
        health = await stack.enter_async_context(
            serve(
                RpcService.of(AgentApi(supervisor)),
                host=settings.host,
                port=settings.port,
                socket=settings.health_socket,
                tls=trust.tls,
                trust=settings.trust,
                label="agent",
                authorize=trust.authorize,
            )
        )
        supervisor.adopt()
        await health.ready()
        log.info(
            "ready", node=node, address=settings.address, node_address=address, home=str(home.root),
            workloads=len(supervisor.workloads()),
        )  # fmt: skip
        settling = Settling(health, lambda: supervisor.all_run, settings.settle_seconds)
        parts = [part.run for part in (trust.member, certificate, supervisor, sessions, settling) if part is not None]
        end = _drained(stop, health, supervisor, reporter) if settings.drain_on_stop else stop.wait()
        await first_of(end, supervise(partial(health.follow, sessions.is_heard, FOLLOW_SECONDS), *parts))


async def _drained(stop: asyncio.Event, health: Health, supervisor: Supervisor, reporter: Reporter) -> None:
    """Returns when the process is to end, its workloads have ended, and the state service, if it answers, has their
    statuses."""
    await stop.wait()
    await health.unready()
    await supervisor.drain()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LAST_REPORT_SECONDS):
            await reporter.all_received()


def _launcher(
    settings: Settings, home: Home, commands: Mapping[str, Command], surroundings: Surroundings, shipping: Shipping
) -> Launcher:
    """Looks at how this host can hold workloads to limits: takes up to some seconds."""
    return Launcher(
        home,
        commands,
        grace_seconds=settings.grace_seconds,
        log_keeping=settings.log_keeping,
        surroundings=surroundings,
        needed=shipping.needed,
        broker_data=settings.broker_data,
        limiter=make_limiter(settings.limits, home),
    )


def _trust(settings: Settings, node: str) -> AgentTrust:
    return AgentTrust.of(
        node,
        Tls.of("agent", settings.tls_certificate, settings.tls_key),
        MemberFolder(settings.folder.member(IdentityKind.NODE)),
        trust=settings.trust,
        state_address=settings.state_address,
        state_ca=settings.state_ca,
        hosts=settings.hosts,
    )


def _certificate(settings: Settings, home: Home, trust: AgentTrust, surroundings: Surroundings) -> Certificate | None:
    """Returns the certificate of the node's brokers; None where the node has no CA to get it from."""
    if trust.member is None:
        return None
    folder, owner = MemberFolder(settings.folder.member(IdentityKind.BROKER)), surroundings.of("broker").owner
    certificate = Certificate(
        folder, home.workloads, trust.link, settings.state_address, settings.node_name, settings.hosts, owner
    )
    certificate.begin()
    return certificate


def _each(*takers: Callable[[NodeSecrets], None]) -> Callable[[NodeSecrets], None]:
    def take(message: NodeSecrets) -> None:
        for taker in takers:
            taker(message)

    return take


def registration(settings: Settings, node: str) -> Registration:
    """Returns this agent's facts about itself and its host."""
    return Registration(
        node=node,
        agent_address=settings.address,
        node_address=settings.workload_address,
        cpus=processors(),
        memory_bytes=psutil.virtual_memory().total,
        version=own_version(),
        incarnation=uuid.uuid4().hex,
        broker_tls=True,
        tenant_users=bool(settings.tenant_users),
    )


def own_version() -> str:
    """Returns the installed version; "source" when keelman runs from a checkout that was not installed."""
    try:
        return version("keelman")
    except PackageNotFoundError:
        return "source"


@contextlib.contextmanager
def lock(home: Home) -> Iterator[None]:
    """Holds the home against other agents; the system releases it when this process ends, in whatever way.

    Raises FailedPrecondition when another agent holds it and InvalidArgument when the home cannot be written.
    """
    path = home.agent_lock
    try:
        private_folder(path.parent)
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+", errors="replace")
    except OSError as error:
        raise InvalidArgument.of("agent.home", str(home.root), f"a folder that can be written ({error})") from None
    with file:
        if holder := take_lock(file):
            raise FailedPrecondition(
                f"another agent (pid {holder}) runs on {home.root}: stop it, or set another agent.home",
                reason="HOME_IN_USE",
                metadata={"home": str(home.root), "pid": holder},
            )
        yield
