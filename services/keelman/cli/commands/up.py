"""`keelman up` in its three ways: in the foreground, in the background, and as the process that a starter waits for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from functools import partial
from typing import Annotated, Any

import typer

from keelman.cli.client.target import home_of
from keelman.cli.exits import FAILED, INTERRUPTED, OK, complain, exit_code_of
from keelman.cli.machine.detached import Heard, Told, start_detached
from keelman.cli.machine.options import Options
from keelman.cli.machine.system import System, running_system
from keelman.cli.machine.up import GRACE_SECONDS, run
from keelman.cli.options import HomeFolder, Settings, command_group
from keelman.cli.waiting import Line, progress_line, until
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.logs.logging import configure
from keelman.runtime.supervise import Siblings, run_process

app = command_group()
CUT = 3  # run_process's code for a life that had to be cut


@app.command()
def up(
    *,
    home: HomeFolder = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="In the background; returns when ready.")] = False,
    port: Annotated[int | None, typer.Option("--port", help="gRPC port of the gateway [7400].")] = None,
    http_port: Annotated[int | None, typer.Option("--http-port", help="HTTP port of the gateway [7480].")] = None,
    settings: Settings = None,
    free_ports: Annotated[bool, typer.Option("--free-ports", help="Take free ports for everything.")] = False,
    broker: Annotated[
        bool, typer.Option("--broker/--no-broker", help="Have a managed broker cluster `default`.")
    ] = True,
    starter: Annotated[int | None, typer.Option("--starter", hidden=True)] = None,
    tied: Annotated[bool, typer.Option("--tied", hidden=True)] = False,
) -> int:
    """Start the whole system on this machine: state, gateway, agent and a Kafka broker. Ctrl-C stops it all."""
    options = Options.of(home, settings or [], port=port, http_port=http_port, free_ports=free_ports, broker=broker)
    if starter is not None:
        return _as_started(options, starter, tied=tied)
    return asyncio.run(_detached(options)) if detach else _foreground(options)


def _foreground(options: Options) -> int:
    """Runs until Ctrl-C or SIGTERM, then drains. A second one cuts."""
    system = running_system(options.home)
    if system is not None:
        complain(f"already running, gateway at {system.gateway}: stop it with {_command('down', options)}")
        return FAILED
    with progress_line() as line:
        code, _ = _life(partial(run, options, _Shown(line, options)))
    return code


async def _detached(options: Options) -> int:
    system = running_system(options.home)
    with progress_line() as line:
        if system is None:
            started = start_detached(options, tied=False)
            try:
                system = await started.ready(partial(_show, line))
            except (KeyboardInterrupt, asyncio.CancelledError):
                line.say("interrupted: stopping what was started")
                started.stop()
                return INTERRUPTED
            finally:
                started.link.close()
        elif not system.ready:
            line.say("already starting: waiting until it is ready")
            system = await _awaited(options, system)
        else:
            print("already running")
    _print_system(system, options)
    return OK


async def _awaited(options: Options, system: System) -> System:
    latest = system

    def ready_or_gone() -> bool:
        nonlocal latest
        latest = running_system(options.home) or latest
        return latest.ready or not system.up.alive

    await until(ready_or_gone)
    if not latest.ready:
        raise Unavailable(f"the system of {options.home.root} ended before it was ready: see {options.home.log('up')}")
    return latest


def _as_started(options: Options, descriptor: int, *, tied: bool) -> int:
    """The process behind `--detach`: tells its starter how it goes; tied, it drains when the starter is gone."""
    told = Told(descriptor)

    async def body(stop: asyncio.Event) -> None:
        async def watch_starter() -> None:
            await told.starter_gone()
            stop.set()

        async with Siblings() as siblings:
            if tied:
                siblings.start(watch_starter())
            await run(options, told, stop)

    code, error = _life(body)
    if error is not None:
        told.failed(error.message, exit_code_of(error))
    return code


def _life(body: Any) -> tuple[int, KeelmanError | None]:
    """Runs a body as a process and returns the exit code, by the class of the error where one ended it."""
    configure("up", level="warning")
    seen: list[KeelmanError] = []

    async def remembered(stop: asyncio.Event) -> None:
        work: Coroutine[Any, Any, None] = body(stop)
        try:
            await work
        except KeelmanError as error:
            seen.append(error)

    code = run_process("keelman up", remembered, grace_seconds=GRACE_SECONDS)
    if seen:
        complain(seen[0].message)
        return exit_code_of(seen[0]), seen[0]
    return (INTERRUPTED if code == CUT else code), None


class _Shown:
    """Shows a start in the foreground."""

    def __init__(self, line: Line, options: Options) -> None:
        self._line = line
        self._options = options

    def say(self, text: str) -> None:
        self._line.say(text)

    def note(self, text: str) -> None:
        self._line.note(text)

    def serving(self, system: System) -> None:
        self._line.say("services answer")

    def ready(self, system: System) -> None:
        self._line.pause()
        _print_system(system, self._options)
        print("running; Ctrl-C stops everything", flush=True)


def _show(line: Line, heard: Heard) -> None:
    if heard.kind == "say":
        line.say(heard.text)
    elif heard.kind == "note":
        line.note(heard.text)


def _print_system(system: System, options: Options) -> None:
    """Says where things are."""
    print(f"gateway  {system.gateway} (gRPC), {system.http} (HTTP; Connect's REST under /clusters/NAME/)")
    print(f"node     {system.node}, agent {system.agent}; state {system.state}")
    print(f"home     {system.home} (logs in {options.home.log('state').parent})")
    print(f"next     {_command('status', options)}; {_command('get bc', options)}; {_command('down', options)}")
    sys.stdout.flush()


def _command(words: str, options: Options) -> str:
    usual = home_of(None).root == options.home.root
    return f"`keelman {words}{'' if usual else f' --home {options.home.root}'}`"
