"""`keelman up` in its three ways: in the foreground, in the background, and as the process that a starter waits for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

import typer

from keelman.cli.client.system import System, running_system
from keelman.cli.client.target import home_of
from keelman.cli.exits import FAILED, INTERRUPTED, OK, exit_code_of, print_error
from keelman.cli.machine.detached import Message, Starter, start_detached
from keelman.cli.machine.options import UpOptions
from keelman.cli.machine.services import last_words
from keelman.cli.machine.up import GRACE_SECONDS, Stage, run
from keelman.cli.options import HomeFolder, Settings, command_group
from keelman.cli.waiting import progress_line, until
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
        bool, typer.Option("--broker/--no-broker", help="Run a managed broker cluster `default`.")
    ] = True,
    starter: Annotated[int | None, typer.Option("--starter", hidden=True)] = None,
    tied: Annotated[bool, typer.Option("--tied", hidden=True)] = False,
) -> int:
    """Start the whole system on this machine: state, gateway, agent and a Kafka broker. Ctrl-C stops it all."""
    options = UpOptions.of(home, settings or [], port=port, http_port=http_port, free_ports=free_ports, broker=broker)
    if starter is not None:
        return _as_started(options, starter, tied=tied)
    return asyncio.run(_detach(options)) if detach else _foreground(options)


def _foreground(options: UpOptions) -> int:
    """Runs until Ctrl-C or SIGTERM, then drains. A second one cuts."""
    system = running_system(options.home)
    if system is not None:
        print_error(f"already running, gateway at {system.gateway}: stop it with {_command('down', options)}")
        return FAILED
    with progress_line() as line:

        def report(stage: Stage, text: str = "") -> None:
            if stage == "ready":
                line.pause()
                _print_system(options)
                print("running; Ctrl-C stops everything", flush=True)
            elif stage == "note":
                line.print(text)
            else:
                line.show(text or "the services are ready")

        return _run_process(partial(run, options, report))


async def _detach(options: UpOptions) -> int:
    system = running_system(options.home)
    with progress_line() as line:

        def show(message: Message) -> None:
            if message.stage in ("step", "note"):
                (line.print if message.stage == "note" else line.show)(message.text)

        if system is None:
            started = start_detached(options, tied=False)
            try:
                await started.ready(show)
            except (KeyboardInterrupt, asyncio.CancelledError):
                line.show("interrupted: stopping the started processes")
                started.stop()
                return INTERRUPTED
            finally:
                started.link.close()
        elif not system.ready:
            line.show("already starting: waiting until it is ready")
            await _wait_ready(options, system)
        else:
            print("already running")
    _print_system(options)
    return OK


async def _wait_ready(options: UpOptions, system: System) -> None:
    latest = system

    def ready_or_gone() -> bool:
        nonlocal latest
        latest = running_system(options.home) or latest
        return latest.ready or not system.up.alive

    await until(ready_or_gone)
    if not latest.ready:
        raise Unavailable(f"the system of {options.home.root} ended before it was ready: see {options.home.log('up')}")


def _as_started(options: UpOptions, descriptor: int, *, tied: bool) -> int:
    """The process behind `--detach`: reports its start to its starter; tied, it drains when the starter is gone."""
    starter = Starter(descriptor)

    async def body(stop: asyncio.Event) -> None:
        async def watch_starter() -> None:
            await starter.wait_gone()
            stop.set()

        async with Siblings() as siblings:
            if tied:
                siblings.start(watch_starter())
            try:
                await run(options, starter.report, stop)
            except KeelmanError as error:
                starter.report("failed", error.message, exit_code_of(error))
                raise

    return _run_process(body)


def _run_process(body: Callable[[asyncio.Event], Awaitable[None]]) -> int:
    """Runs a body as a process and returns the exit code, by the class of the error where one ended it."""
    configure("up", level="warning")
    failures: list[KeelmanError] = []

    async def keep_failure(stop: asyncio.Event) -> None:
        try:
            await body(stop)
        except KeelmanError as error:
            failures.append(error)

    code = run_process("keelman up", keep_failure, grace_seconds=GRACE_SECONDS)
    for error in failures:
        print_error(error.message)
        return exit_code_of(error)
    return INTERRUPTED if code == CUT else code


def _print_system(options: UpOptions) -> None:
    """Prints the addresses."""
    system = running_system(options.home)
    if system is None:
        raise Unavailable(f"`keelman up` ended as soon as it was ready: {last_words(options.home.log('up'))}")
    print(f"gateway  {system.gateway} (gRPC), {system.http} (HTTP; Connect's REST under /clusters/NAME/)")
    print(f"node     {system.node}, agent {system.agent}; state {system.state}")
    print(f"home     {system.home} (logs in {options.home.log('state').parent})")
    print(f"next     {_command('status', options)}; {_command('get bc', options)}; {_command('down', options)}")
    sys.stdout.flush()


def _command(words: str, options: UpOptions) -> str:
    usual = home_of(None).root == options.home.root
    return f"`keelman {words}{'' if usual else f' --home {options.home.root}'}`"
