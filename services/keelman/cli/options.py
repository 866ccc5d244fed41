"""Arguments and options that several commands have. Text only: imports nothing heavy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from keelman.cli.kinds import KINDS, legal_kinds
from keelman.model.errors import InvalidArgument

WAIT_SECONDS = 180.0


def command_group() -> typer.Typer:
    """The commands of one module, plain as the whole command line is."""
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


def kind_word(verb: str) -> typer.models.ArgumentInfo:
    """The word that says which kind a command is about: one that has the verb. A shell completes it."""

    def complete(incomplete: str) -> list[str]:
        return [
            word for k in KINDS if verb in k.verbs for word in (k.plural, k.singular) if word.startswith(incomplete)
        ]

    info: typer.models.ArgumentInfo = typer.Argument(
        metavar="KIND", help=f"One of {legal_kinds(verb)}; the singular works too.", autocompletion=complete
    )
    return info


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name; a connector's is CLUSTER/NAME, or NAME where unique.")
]
PlainName = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
MaybeName = Annotated[str | None, typer.Argument(metavar="[NAME]", help="One of them; all when left out.")]
HomeFolder = Annotated[
    Path | None, typer.Option("--home", metavar="DIR", help="Folder of the system [KEELMAN_HOME, else ~/.keelman].")
]
GatewayAddress = Annotated[
    str | None,
    typer.Option(
        "--gateway", metavar="HOST:PORT", help="The gateway [KEELMAN_GATEWAY, else the home's, else 127.0.0.1:7400]."
    ),
]
Cluster = Annotated[
    str, typer.Option("--cluster", metavar="WC", help="Worker cluster of a connector, worker or copy run.")
]
Form = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="table, wide, json, yaml or name.")]
TextForm = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="text, json or yaml.")]
Worker = Annotated[
    str, typer.Option("--worker", metavar="URL", help="REST address of a worker, in place of the gateway.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait, with live progress, until the state is reached.")]
_UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "h": 3600.0}


def _seconds(text: str) -> float:
    """A time as people write it. Raises typer.BadParameter."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|s|m|h|)", text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is not legal: seconds, as 90, 90s, 1.5m or 1h")
    return float(found[1]) * _UNITS[found[2]]


WaitSeconds = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="How long --wait waits [180]: 90, 90s, 2m.", parser=_seconds),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config-file",
        metavar="FILE",
        help="Of a connector or secret: .json or .properties; of a worker configuration.",
    ),
]
ConfigValues = Annotated[
    list[str] | None, typer.Option("--set", metavar="K=V", help="Connector configuration; may be repeated.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SERVICE.KEY=VALUE", help="A setting of state, gateway or agent; may be repeated."),
]


def seconds_of(wait: bool, timeout: float | None) -> float | None:
    """How long is waited; None for not at all. Raises InvalidArgument for a time without `--wait`."""
    if timeout is not None and not wait:
        raise InvalidArgument("--timeout: only together with --wait")
    return (WAIT_SECONDS if timeout is None else timeout) if wait else None


def takes(made: type, name: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Gives a command the fields of a dataclass as options; it gets them as one value, its parameter of that name."""
    hints = get_type_hints(made, include_extras=True)
    names = [one.name for one in fields(made)]

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        def called(*words: Any, **given: Any) -> int:
            return command(*words, **{name: made(**{one: given.pop(one) for one in names})}, **given)

        own = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in own.parameters.values():
            if parameter.name == name:
                parameters += [
                    inspect.Parameter(f.name, parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
                    for f in fields(made)
                ]
            else:
                parameters.append(parameter)
        called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": int}
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        return called

    return decorated
