"""The main of every service: flags derived from its settings, then its whole life. Standard library's argparse only, so
that a service starts without the command line's libraries."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from keelman.model.errors import KeelmanError
from keelman.runtime import grpc_forks
from keelman.runtime.home import Home, writable
from keelman.runtime.logs.logging import configure
from keelman.runtime.logs.native_lines import NATIVE
from keelman.runtime.settings import SERVICES, Loaded, known, load
from keelman.runtime.supervise import run_process

__all__ = ["CONFIG", "RUN", "SERVICES", "Command", "Program", "add_flags", "run_service", "service_main"]


@dataclass(frozen=True, slots=True)
class Program:
    """A service as its package declares it: keelman.<name>.settings.Settings and keelman.<name>.service.run."""

    name: str
    settings: type[Any]

    @classmethod
    def of(cls, name: str) -> Program:
        """Returns the program. Imports only the settings; the service itself is imported when it runs."""
        return cls(name, import_module(f"keelman.{name}.settings").Settings)

    @property
    def run(self) -> Callable[[Any, asyncio.Event], Coroutine[Any, Any, None]]:
        """The service's `run(settings, stop)`."""
        gc.disable()  # all imported objects stay: collecting repeatedly takes a tenth of a start
        try:
            run: Callable[[Any, asyncio.Event], Coroutine[Any, Any, None]] = import_module(
                f"keelman.{self.name}.service"
            ).run
        finally:
            gc.freeze()
            gc.enable()
        return run


@dataclass(frozen=True, slots=True)
class Command:
    """A word of `keelman <service>`. `words` names the words that may follow it without a flag; `given` converts them
    to settings and raises InvalidArgument."""

    name: str
    text: str
    words: str = ""
    given: Callable[[Sequence[str]], Mapping[str, Any]] = lambda words: {}


WITH_FILE_IN_HOME = ("agent", "gateway")
WITH_CALLERS = ("state", "gateway")
"""Services whose servers are called from other hosts: grpc's lines about refused TLS handshakes become events."""
RUN = Command("run", "run until SIGTERM")
CONFIG = Command("config", "print each setting and where it came from")


def service_main(name: str, arguments: Sequence[str], commands: Sequence[Command] = (RUN, CONFIG)) -> int:
    """Runs `keelman <name> run|config ...`; returns the exit code: 0 ended as asked, 1 failed, 2 wrong usage, 3 cut."""
    grpc_forks.keep_out()
    program = Program.of(name)
    parser = argparse.ArgumentParser(prog=f"keelman {name}", description=import_module(f"keelman.{name}").__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True)
    for command in commands:
        subparser = subparsers.add_parser(command.name, help=command.text, description=command.text, allow_abbrev=False)
        add_flags(subparser, program.settings)
        if command.words:
            subparser.add_argument("words", nargs="*", metavar=command.words)
    parsed, rest = parser.parse_known_args(arguments)
    options = vars(parsed)
    name_of_command = options.pop("command")
    chosen = next(command for command in commands if command.name == name_of_command)
    words = [*options.pop("words", ()), *(word for word in rest if chosen.words and not word.startswith("-"))]
    try:
        for word in rest:
            if word.startswith("--"):
                fields = {f.name: f for f in dataclasses.fields(program.settings)}
                known(word.removeprefix("--").partition("=")[0], fields, "on the command line")
            elif word not in words:
                parser.error(f"unexpected argument {word!r}")
        flags = {**options, **chosen.given(words)}
    except KeelmanError as error:
        print(f"keelman {name}: {error.message}", file=sys.stderr)
        return 2
    return run_service(program, flags, only_print=chosen.name == CONFIG.name)


def run_service(program: Program, flags: Mapping[str, Any], *, only_print: bool = False) -> int:
    """Loads the settings, with `flags` first (`file` among them names a TOML file), and runs the service. Returns the
    exit code."""
    name, flags = program.name, dict(flags)
    try:
        file = flags.pop("file", None) or file_in_home(name, flags, os.environ)
        loaded = load(program.settings, name, file=file, flags=flags, environment=os.environ)
    except KeelmanError as error:
        print(f"keelman {name}: {error.message}", file=sys.stderr)
        return 2
    if only_print:
        print_config(loaded)
        return 0
    settings = loaded.settings
    try:
        run = program.run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("keelman"):
            raise
        print(f"keelman {name}: {error.name} is not installed: pip install 'keelman[{name}]'", file=sys.stderr)
        return 1
    if name in WITH_CALLERS:
        NATIVE.begin()
    configure(name, json=settings.log_json, level=settings.log_level)

    async def life(stop: asyncio.Event) -> None:
        if settings.health_socket is not None:
            writable(f"{name}.health_socket", settings.health_socket.parent, private=True)
        await run(settings, stop)

    return run_process(f"keelman {name}", life, grace_seconds=settings.end_seconds)


def file_in_home(name: str, flags: Mapping[str, Any], environment: Mapping[str, str]) -> Path | None:
    """Returns the settings file of a service that is given none: of agents and gateways <name>.toml in their home,
    where the join writes it; None without such a file."""
    if name not in WITH_FILE_IN_HOME:
        return None
    folder = flags.get("home") or environment.get(f"KEELMAN_{name.upper()}_HOME")
    file = Home.of(Path(folder) if folder else None).settings_file(name)
    return file if file.is_file() else None


def print_config(loaded: Loaded[Any]) -> None:
    """Prints each value and its source, secrets hidden."""
    for origin in loaded.origins:
        unit = f" {origin.unit}" if origin.unit else ""
        print(f"{origin.key} = {origin.shown}{unit}  # {origin.source}")


def add_flags(parser: argparse.ArgumentParser, settings: type[Any], *, without: Sequence[str] = ()) -> None:
    """Adds a flag for each setting but those `without` one, and `--file`; flags that are not given are None."""
    parser.add_argument("--file", type=Path, default=None, metavar="TOML", help="settings file")
    for field in dataclasses.fields(settings):
        if field.name in without:
            continue
        meta = field.metadata
        unit = f" ({meta['unit']})" if meta.get("unit") else ""
        default = "" if field.default in (dataclasses.MISSING, None, "") else f" [{field.default}]"
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            dest=field.name,
            default=None,
            metavar=field.name.upper(),
            help=f"{meta.get('help', '')}{unit}{default}".replace("%", "%%"),
        )
