"""`keelman connector run`: a connector from one Python file, on a standalone worker of its own, for its author."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import javaproperties
import typer

from keelman.cli.client.rest import ConnectRest
from keelman.cli.client.target import GatewayTarget, home_of
from keelman.cli.configuration import given_config
from keelman.cli.exits import print_error
from keelman.cli.one_file import ImportFault, OneFile, choose_class
from keelman.cli.options import ConfigFile, ConfigValues, command_group
from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.runtime.home import writable
from keelman.runtime.logs.logging import configure
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import run_process, wait_or_stop
from keelman.workers.status_notes import STATUS_FIELD, waits_for

app, connector = command_group(), command_group()
app.add_typer(connector, name="connector", help="Run a connector from one Python file, to try it out.")
LOOK_SECONDS = 0.5
STOP_SECONDS = 40.0
ASK_SECONDS = 5.0
ONCE = {"keelman.restart.max.attempts": "0"}
"""A failure stays until its author has changed something."""
CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


@connector.callback()
def group() -> None:
    """Keeps `run` a command of a group, though it is the only one."""


@connector.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Python file with a class of the connector SDK.")],
    *,
    values: ConfigValues = None,
    config_file: ConfigFile = None,
    which: Annotated[
        str, typer.Option("--class", metavar="CLASS", help="Which class, where the file has several.")
    ] = "",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The connector's name [the file's].")] = "",
    bootstrap_servers: Annotated[
        str, typer.Option("--bootstrap-servers", metavar="HOST:PORT", help="Kafka [that of the gateway].")
    ] = "",
    brokers: Annotated[
        str, typer.Option("--broker-cluster", metavar="BC", help="Broker cluster of the gateway [the only one].")
    ] = "",
    port: Annotated[int | None, typer.Option("--port", help="REST port of its worker [a free one].", min=1)] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the offsets of earlier runs.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also show the worker's log.")] = False,
    target: GatewayTarget,
) -> int:
    """Run a connector from one Python file, without a wheel, until Ctrl-C; run it again whenever the file changes.

    It runs on a standalone worker of its own, with a Spark service of its own. Keys are texts and values JSON unless
    --set or --config-file names other converters.
    """
    source = OneFile.of(file)
    whole, values_given = given_config(config_file, values)
    config = {**(whole or {}), **values_given}
    which = which or config.get("connector.class", "")
    with contextlib.suppress(ImportFault):  # the problem is printed, and the next change of the file is waited for
        choose_class(asyncio.run(source.classes()), which)
    if bootstrap_servers and brokers:
        raise InvalidArgument("--broker-cluster: not together with --bootstrap-servers")
    plain = name or config.get("name") or source.path.stem
    client = {"bootstrap.servers": bootstrap_servers}
    if not bootstrap_servers:
        client = asyncio.run(_client_properties(target, brokers))
    folder = home_of(target.home).root / "connector-runs" / quote(plain, safe="")
    writable("--home", folder)
    if fresh:
        (folder / "offsets").unlink(missing_ok=True)
    life = ConnectorRun(source, which, plain, config, client, folder, verbose)
    life.port = port or free_ports(1)[0]
    configure("connector", level="error")
    return run_process("keelman", life.run, grace_seconds=STOP_SECONDS + ASK_SECONDS)


async def _client_properties(target: GatewayTarget, broker_cluster: str) -> dict[str, str]:
    async with target.open() as gateway:
        return await gateway.client_properties(broker_cluster)


@dataclass(slots=True)
class ConnectorRun:
    """One `keelman connector run`: a worker at a time, the next one after a change that can be imported."""

    source: OneFile
    which: str
    name: str
    config: Mapping[str, str]
    client: Mapping[str, str]
    folder: Path
    verbose: bool
    port: int = 0
    _printed: list[str] = field(default_factory=list)

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop`."""
        worker: asyncio.subprocess.Process | None = None
        seen: dict[Path, int] = {}
        rest = f"http://127.0.0.1:{self.port}/connectors/{quote(self.name, safe='')}"
        print(f"connector {self.name} of {self.source.path}; Ctrl-C ends it; its REST: {rest}", flush=True)
        try:
            async with httpx.AsyncClient(timeout=ASK_SECONDS, trust_env=False) as http:
                while not stop.is_set():
                    now = self.source.stamps()
                    if now != seen:
                        again, seen = bool(seen), now
                        worker = await self._await_change(worker, again=again)
                    elif worker is not None and worker.returncode is not None:
                        print(
                            f"its worker ended with exit code {worker.returncode}; the next change starts it again",
                            flush=True,
                        )
                        worker = None
                    elif worker is not None:
                        await self._print_status(ConnectRest(http, rest))
                    await wait_or_stop(stop, LOOK_SECONDS)
        finally:
            await _end(worker)

    async def _await_change(
        self, worker: asyncio.subprocess.Process | None, *, again: bool
    ) -> asyncio.subprocess.Process | None:
        """Starts another worker for the present file. If the file cannot be imported, the present worker stays."""
        try:
            classes = await self.source.classes()
            choice = choose_class(classes, self.which)
        except KeelmanError as error:
            print_error(error.message)
            goes_on = " the previous version keeps running;" if worker is not None else ""
            print(f"{goes_on} waiting for a change of {self.source.path.name}".strip(), flush=True)
            return worker
        if again:
            print(f"{self.source.path.name} has changed: starting again", flush=True)
        await _end(worker)
        self.source.lay_out(self.folder / "plugins" / self.source.path.stem, classes)
        self._printed = []
        return await self._start({**ONCE, **self.config, "name": self.name, "connector.class": choice.name})

    async def _start(self, config: Mapping[str, str]) -> asyncio.subprocess.Process:
        properties = {
            **CONVERTERS,
            **self.client,
            "listeners": f"http://127.0.0.1:{self.port}",
            "plugin.path": str(self.folder / "plugins"),
            "offset.storage.file.filename": str(self.folder / "offsets"),
        }
        worker, connector = self.folder / "worker.properties", self.folder / "connector.json"
        worker.touch(mode=0o600)  # a client's password may be in it
        worker.write_text(javaproperties.dumps(properties, timestamp=False), encoding="latin-1")
        connector.write_text(json.dumps(config))
        flags = [f"--home={self.folder}", f"--log-level={'info' if self.verbose else 'error'}"]
        return await asyncio.create_subprocess_exec(
            *tethered([sys.executable, "-m", "keelman.worker", "standalone", str(worker), str(connector), *flags]),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which ends it
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # two changes within a second are two versions
        )

    async def _print_status(self, rest: ConnectRest) -> None:
        """Prints the states of the connector and its tasks where they have changed."""
        with contextlib.suppress(KeelmanError):  # it is starting, or has just ended
            lines = status_lines(await rest.ask("GET", "/status"))
            for line in lines:
                if line not in self._printed:
                    print(line, flush=True)
            self._printed = lines


def status_lines(status: Mapping[str, Any]) -> list[str]:
    """A line for the connector and for each task, with the reason why it waits, or its trace."""
    lines = []
    for what, state in [("connector", status["connector"]), *((f"task {t['id']}", t) for t in status["tasks"])]:
        trace = state.get("trace", "").rstrip().expandtabs(4) or waits_for(state.get(STATUS_FIELD, {}))
        if state["state"] == "UNASSIGNED":  # it waits: a line only if the reason is worth it
            trace = trace.partition(": ")[2]
        if trace or state["state"] != "UNASSIGNED":
            lines.append(f"{what} {state['state']}" + (f": {trace}" if trace else ""))
    return lines


async def _end(worker: asyncio.subprocess.Process | None) -> None:
    if worker is None or worker.returncode is not None:
        return
    worker.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await worker.wait()
    except TimeoutError:
        worker.kill()
        await worker.wait()
