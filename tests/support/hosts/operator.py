"""An operator's commands on hosts with networks of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keelman.rpc.health import is_serving
from keelman.runtime.home import Home
from support.eventually import eventually
from support.hosts.networks import GATEWAY, STATE, System

KEELMAN = str(Path(sys.executable).with_name("keelman"))


@dataclass(slots=True)
class Commands:
    """Commands on the first host, or within the network of another.

    `first` is the host of the state service and the gateway; empty for this one.
    """

    system: System
    first: str = ""
    running: list[tuple[str, subprocess.Popen[bytes]]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    """By which hosts joined."""

    def line(self, words: tuple[str, ...], host: str = "") -> list[str]:
        inside = ["nsenter", f"--net=/run/netns/{self.system.hosts[host].namespace}"] if host else []
        return [*inside, KEELMAN, *words]

    @property
    def environment(self) -> dict[str, str]:
        stored = {k: v for k, v in os.environ.items() if not k.startswith("KEELMAN_") or k == "KEELMAN_CACHE"}
        return stored | {"KEELMAN_CONTEXTS": str(self.system.folder / "contexts.json")}

    def run(self, *words: str, host: str = "", given: str = "", code: int = 0, seconds: float = 300.0) -> str:
        """Returns the output of a command; its error output if `code` expects it to fail."""
        done = subprocess.run(
            self.line(words, host), input=given, capture_output=True, text=True, env=self.environment, timeout=seconds,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{words}: {done.returncode} {done.stdout} {done.stderr}"
        return done.stderr if code else done.stdout

    async def wait_for(self, *words: str) -> str:
        """Runs a command that waits for its effect."""
        return await asyncio.to_thread(self.run, *words, "--wait", "--timeout", "600", seconds=620)

    def start(self, *words: str, host: str = "") -> None:
        """Starts a service, which is ended with the rest."""
        with (self.system.folder / f"{host or words[0]}.log").open("ab") as log:
            result = subprocess.Popen(
                self.line(words, host), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment
            )
        self.running.append((host, result))

    @property
    def gateway(self) -> str:
        """The gateway's address."""
        address = self.system.hosts[self.first].address if self.first else self.system.address
        return f"{address}:{GATEWAY}"

    @property
    def authority(self) -> Path:
        """The CA of the installation, on the first host."""
        return self.system.folder / "home" / "state" / "ca.pem"

    def home(self, host: str) -> Home:
        """The home of a host's agent."""
        return self.system.hosts[host].home

    def kill(self, host: str, first: int = 0) -> None:
        """Kills the first process that was started on a host, or a later one."""
        (process,) = [result for on, result in self.running if on == host][first : first + 1]
        process.kill()
        process.wait(60)

    def lose(self, host: str) -> None:
        """Kills all processes of a host at once."""
        for on, process in self.running:
            if on == host:
                process.kill()
                process.wait(60)
        self.system.hosts[host].end()

    def join(self, host: str, *words: str) -> str:
        """Joins a host under its own name and starts its agent; returns the output of joining."""
        text = self.run("node", "token", "create", "--ttl", "10m", "--node", host).strip()
        self.tokens.append(text)
        home = str(self.home(host).root)
        value = f"{text}@{self.gateway}"
        told = self.run("node", "join", "-", "--home", home, "--node", host, *words, host=host, given=value)
        self.start("agent", "run", "--home", home, host=host)
        return told

    def in_state(self, node: str, state: str) -> bool:
        """Whether the table of nodes shows this state."""
        table = self.run("get", "nodes").splitlines()
        assert any(line.startswith(f"{node} ") and state in line for line in table), table
        return True


@contextlib.contextmanager
def operated(system: System, first: str = "") -> Iterator[Commands]:
    """Ends the started processes afterwards."""
    commands = Commands(system, first)
    try:
        yield commands
    finally:
        for _, process in reversed(commands.running):
            process.send_signal(signal.SIGTERM)
        for _, process in commands.running:
            process.wait(60)


def setting(config: Mapping[str, str]) -> list[str]:
    """The words of a command that set these keys."""
    return [word for key, value in config.items() for word in ("--set", f"{key}={value}")]


async def first_host(commands: Commands, *, state: str = "", gateway: str = "", beside: str = "") -> str:
    """State service, gateway and an admin's context, as docs/trust.md describes them; returns the admin's token.

    `state` and `gateway`: more lines of their files; `beside`: further state services for the gateway.
    """
    folder, address = commands.system.folder, commands.gateway.partition(":")[0]
    home = folder / "home"
    (folder / "state.toml").write_text(
        f'home = "{home}"\nhost = "{address}"\ntrust = "installation"\n'
        f'connector_policy = "open"\n{state}'  # files of tests are anywhere
    )
    commands.start("state", "run", "--file", str(folder / "state.toml"), host=commands.first)
    result = commands.run("token", "create", "--name", "me", "--role", "admin", "--file", str(folder / "access.toml"))
    (folder / "gateway.toml").write_text(
        f'home = "{home}"\nhost = "{address}"\ntrust = "installation"\n'
        f'state_address = "unix:{home}/run/state.sock{beside}"\naccess_file = "{folder}/access.toml"\n{gateway}'
    )
    commands.start("gateway", "run", "--file", str(folder / "gateway.toml"), host=commands.first)
    await eventually(lambda: is_serving(f"unix:{home}/run/state.sock"), what="state serves")
    (token,) = [line for line in result.splitlines() if " " not in line and len(line) > 20]
    context = ("--gateway", commands.gateway, "--ca", str(commands.authority), "--token-file", "-", "--use")
    commands.run("context", "create", "here", *context, given=token)

    def there() -> bool:
        commands.run("get", "nodes")
        return True

    await eventually(there, what="the gateway answers")
    return token


async def two_states(commands: Commands, database: str) -> str:
    """Starts a second state service beside the first host's, on the second host; returns the admin's token.

    It has a copy of the key, and the gateway uses both services.
    """
    folder, (item, two) = commands.system.folder, list(commands.system.hosts.values())[:2]
    addresses = [f"{host.address}:{STATE}" for host in (item, two)]
    both = f'database = "{database}"\nadvertised_address = "{",".join(addresses)}"\n'
    token = await first_host(commands, state=both, beside=f",{addresses[1]}")
    home = folder / "home-2"
    (home / "state").mkdir(parents=True)
    shutil.copy(folder / "home" / "state" / "secrets.key", home / "state")
    text = (folder / "state.toml").read_text().replace(f"{folder}/home", str(home))
    (folder / "state-2.toml").write_text(text.replace(f'host = "{item.address}"', f'host = "{two.address}"'))
    commands.start("state", "run", "--file", str(folder / "state-2.toml"), host=two.name)
    await eventually(lambda: is_serving(f"unix:{home}/run/state.sock"), what="the second state serves")
    return token
