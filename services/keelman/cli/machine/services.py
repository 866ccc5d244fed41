"""Starts the services that `keelman up` runs, and keeps them running."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keelman.agent.workloads.logs import last_line
from keelman.cli.client.system import Process
from keelman.connect.policy.installations import AUTO, STRICT
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.rpc.server import is_loopback
from keelman.runtime.backoff import Backoff
from keelman.runtime.home import Home, private_folder, write_file, write_json
from keelman.runtime.main import SERVICES, Program
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_row, hold_row, port_is_free, variable
from keelman.runtime.settings import load
from keelman.runtime.supervise import wait_or_stop
from keelman.workers.rest.settings import WORKER_ACCESS

NAMES = ("state", "gateway", "agent")
STOP_SECONDS = 12.0
READY_SECONDS = 300.0
"""The longest start of a service whose process lives: a busy machine needs minutes for what takes two seconds. One that
ends is noticed at once."""
WORKER_PORTS, BROKER_PORTS, SPARK_PORTS, SERVICE_PORTS = 16, 16, 4, 4


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """The start of one service: its flags, settings and log. `ports` are the ports to probe first, each as (setting,
    flag for messages, host, port).

    `secrets` are settings that no command line and no environment may contain, since other users may list these: the
    service reads them from `secrets_file`.
    """

    name: str
    flags: Mapping[str, str]
    settings: Any
    log: Path
    ports: tuple[tuple[str, str, str, int], ...]
    secrets: Mapping[str, str] = field(default_factory=dict)
    secrets_file: Path | None = None

    @property
    def address(self) -> str:
        """The gRPC address of the service, as host:port."""
        return f"{self.settings.host}:{self.settings.port}"

    @property
    def command(self) -> list[str]:
        """The command line of the service."""
        words = [w for key, value in self.flags.items() for w in (f"--{key.replace('_', '-')}", value)]
        file = ["--file", str(self.secrets_file)] if self.secrets else []
        return [sys.executable, "-m", f"keelman.{self.name}", "run", *file, *words]

    def write_secrets(self) -> None:
        """Writes the secrets file, readable only by its owner; removes it if there are no secrets."""
        if self.secrets_file is None:
            return
        if not self.secrets:
            self.secrets_file.unlink(missing_ok=True)
            return
        private_folder(self.secrets_file.parent)
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in self.secrets.items()]
        write_file(self.secrets_file, "".join(lines).encode())


def make_plans(
    home: Home, values: Mapping[str, Mapping[str, str]], *, environment: Mapping[str, str] | None = None
) -> dict[str, ServicePlan]:
    """Returns the plans of all services, with all settings checked. `values` is service -> key -> value from the
    command line.

    Raises InvalidArgument for an unknown service or key, with the legal ones, and for illegal values.
    """
    environment = os.environ if environment is None else environment
    for service in values:
        if service not in NAMES:
            raise InvalidArgument.of("--set", service, "service.key=value with a service of " + ", ".join(NAMES))
    values = _shared(values, environment)
    plans: dict[str, ServicePlan] = {}
    for name in NAMES:
        cls = Program.of(name).settings
        names = {f.name for f in dataclasses.fields(cls)}
        ours = {"home": str(home.root), "state_address": plans["state"].address if plans else ""}
        flags = {k: v for k, v in ours.items() if k in names} | dict(values.get(name, {}))
        settings = load(cls, name, flags=flags, environment=environment).settings
        flag = "--port" if name == "gateway" else f"--set {name}.port="
        ports = [("port", flag, settings.host, settings.port)]
        if name == "gateway":
            ports.append(("http_port", "--http-port", settings.http_host, settings.http_port))
        secret = secret_settings(name)
        plans[name] = ServicePlan(
            name, {k: v for k, v in flags.items() if k not in secret}, settings, home.log(name), tuple(ports),
            {k: getattr(settings, k) for k in sorted(secret) if getattr(settings, k)},
            home.root / name / "secrets.toml",
        )  # fmt: skip
    if plans["state"].settings.connector_policy == AUTO and _tells_callers_apart(plans["gateway"].settings):
        strict = {**values, "state": {**values.get("state", {}), "connector_policy": STRICT}}
        return make_plans(home, strict, environment=environment)
    return plans


def _tells_callers_apart(gateway: Any) -> bool:
    """Returns whether others than the host's own users may call, or callers have roles or accounts."""
    files = gateway.access_file, gateway.managed_connect_access_file
    return any(files) or not (is_loopback(gateway.host) and is_loopback(gateway.http_host))


def _shared(values: Mapping[str, Mapping[str, str]], environment: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Returns the settings, in which `state` and `gateway` get each other's settings for access to workers, where only
    one of them has these."""
    both = {name: dict(values.get(name, {})) for name in ("state", "gateway")}
    for key in WORKER_ACCESS:
        set_values = {
            name: values.get(key, environment.get(variable(f"{name}.{key}"))) for name, values in both.items()
        }
        for name, other in (("state", "gateway"), ("gateway", "state")):
            value = set_values[other]
            if set_values[name] is None and value is not None:
                both[name][key] = value
    return {**values, **both}


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment without secret settings, and without settings of services that an agent starts: the agent
    passes none on."""
    secret = {variable(f"{name}.{key}") for name in NAMES for key in secret_settings(name)}
    others = tuple(variable(f"{name}.") for name in SERVICES if name not in NAMES)
    return {key: value for key, value in environment.items() if key not in secret and not key.startswith(others)}


def secret_settings(service: str) -> frozenset[str]:
    """Returns the settings of a service that no command line may contain."""
    fields = dataclasses.fields(Program.of(service).settings)
    return frozenset(field.name for field in fields if field.metadata.get("secret"))


def check_ports(plans: Mapping[str, ServicePlan]) -> None:
    """Raises Unavailable for a port that is in use, InvalidArgument for a port given twice; both name the flag."""
    owners: dict[tuple[str, int], str] = {}
    for plan in plans.values():
        for setting, flag, host, port in plan.ports:
            other = owners.setdefault((host, port), f"{plan.name}.{setting}")
            if other != f"{plan.name}.{setting}":
                raise InvalidArgument.of(f"{plan.name}.{setting}", port, f"another port than {other}'s ({flag})")
            if not port_is_free(host, port):
                raise Unavailable(
                    f"{plan.name}.{setting}: {port} on {host} is taken by another process: stop it, or give another "
                    f"free port with {flag} or {variable(f'{plan.name}.{setting}')}, or free ports for all with "
                    "--free-ports (`make run FREE_PORTS=1`)",
                    reason="PORT_TAKEN",
                    metadata={"port": str(port)},
                )


def free_settings(home: Home, note: Callable[[str], None]) -> dict[str, dict[str, str]]:
    """Returns settings with free ports: the home's earlier ports, or else other ports, which is reported to `note`.

    This process holds the ports as long as it lives. Call it with the home locked. Raises Unavailable (NO_FREE_PORTS).
    """
    file = home.root / "ports.json"
    count = SERVICE_PORTS + WORKER_PORTS + BROKER_PORTS + SPARK_PORTS
    first = _kept_port(file)
    reason = _why_not_again(range(first, first + count)) if first else "none before"
    if reason:
        before, first = first, free_row(count)[0]
        if before:
            had, has = (f"{port} to {port + count - 1}" for port in (before, first))
            note(f"{reason}: this home, which had {had}, has ports {has} now")
        home.root.mkdir(parents=True, exist_ok=True)
        write_json(file, {"first": first, "count": count})
    state, gateway, http, agent = range(first, first + SERVICE_PORTS)
    workers = first + SERVICE_PORTS
    brokers, spark = workers + WORKER_PORTS, workers + WORKER_PORTS + BROKER_PORTS
    return {
        "state": {
            "port": str(state),
            "worker_ports": f"{workers}-{brokers - 1}",
            "broker_ports": f"{brokers}-{spark - 1}",
            "spark_ports": f"{spark}-{spark + SPARK_PORTS - 1}",
        },
        "gateway": {"port": str(gateway), "http_port": str(http)},
        "agent": {"port": str(agent)},
    }


def _kept_port(file: Path) -> int:
    """Returns the first port that the home had before; 0 for none."""
    try:
        return int(json.loads(file.read_text(encoding="utf-8"))["first"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _why_not_again(row: range) -> str:
    # A broker or worker that still runs from before may hold its port: only the services' own ports must be free.
    for port in row[:SERVICE_PORTS]:
        if not port_is_free("127.0.0.1", port):
            return f"port {port} is taken by another process"
    return "" if hold_row(row) else f"ports {row[0]} to {row[-1]} are held by another `keelman up`"


class RunningService:
    """One service that is kept running: it is restarted with a growing pause when it ends by itself."""

    def __init__(self, plan: ServicePlan, changed: Callable[[], object], died: Callable[[str], None]) -> None:
        self.plan = plan
        self.process = Process(0, "")
        self.was_ready = False
        self.failure: Unavailable | None = None
        self._changed = changed
        self._died = died
        self._child: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()

    async def keep(self) -> None:
        """Runs the service until `stop`, or until it ends before it was ever ready: `failure` is then the reason."""
        backoff = Backoff()
        while True:
            code = await self._once()
            if self._stopping.is_set():
                return
            if not self.was_ready:
                words = last_words(self.plan.log)
                self.failure = Unavailable(f"{self.plan.name} ended with exit code {code} before it was ready: {words}")
                return
            pause = backoff.next()
            self._died(f"{self.plan.name} ended with exit code {code}: starting it again, see {self.plan.log}")
            if await wait_or_stop(self._stopping, pause):
                return

    async def _once(self) -> int:
        self.plan.log.parent.mkdir(parents=True, exist_ok=True)
        self.plan.write_secrets()
        with self.plan.log.open("ab") as log:
            # A session of its own: Ctrl-C in a terminal goes to the whole group, and services end only after the drain.
            self._child = await asyncio.create_subprocess_exec(
                *tethered(self.plan.command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=child_environment(os.environ),
            )
        self.process = Process.of(self._child.pid)
        self._changed()
        return await self._child.wait()

    async def stop(self) -> bool:
        """Signals the service to end, and kills it after STOP_SECONDS. Returns True if it ended by itself."""
        self._stopping.set()
        child = self._child
        if child is None or child.returncode is not None:
            return True
        child.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await child.wait()
        except TimeoutError:
            self.kill()
            await child.wait()
            return False
        return True

    def kill(self) -> None:
        """Kills the service at once."""
        self._stopping.set()
        if self._child is not None and self._child.returncode is None:
            self._child.kill()


def last_words(log: Path) -> str:
    """Returns the last non-empty line of a log, and the path of the log."""
    return f"{last_line(log) or 'nothing logged'} (log: {log})"
