"""Arguments and options that several commands have. Text only: imports nothing heavy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from keelman.cli.kinds import KINDS, Kind, check_option, legal_kinds
from keelman.model.errors import InvalidArgument

C = TypeVar("C", bound=Callable[..., Any])
WAIT_SECONDS = 180.0


class Commands(typer.Typer):
    """The commands of one module, in plain style like the whole command line. For a parameter that is a dataclass, each
    of its fields becomes an option."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[C], C]:
        """Registers the decorated function as a command."""

        def decorated(command: C) -> C:
            super(Commands, self).command(name, **options)(_with_fields(command))
            return command

        return decorated


def command_group() -> Commands:
    """Returns an empty group for the commands of one module."""
    return Commands(rich_markup_mode=None, pretty_exceptions_enable=False)


def _with_fields(command: Callable[..., Any]) -> Callable[..., Any]:
    own = inspect.signature(command, eval_str=True)
    groups = {
        parameter.name: parameter.annotation
        for parameter in own.parameters.values()
        if is_dataclass(parameter.annotation)
    }

    def called(*words: Any, **values: Any) -> Any:
        return command(*words, **{name: _taken(kind, values) for name, kind in groups.items()}, **values)

    parameters = [
        option
        for parameter in own.parameters.values()
        for option in (_fields_of(groups[parameter.name]) if parameter.name in groups else [parameter])
    ]
    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": int}
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    return called


def option(
    flags: str = "", metavar: str | None = None, text: str = "", of: Sequence[Kind] = KINDS, *, default: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """Returns a dataclass field for an option of a command, with its flags and help unless its type has them, and the
    kinds that accept it."""
    info = typer.Option(*flags.split(), metavar=metavar, help=text, **options) if flags else None
    return field(
        default=default, metadata={"option": info, "flag": flags.partition(" ")[0].partition("/")[0], "kinds": of}
    )


def check_meant(kind: Kind, options: Any) -> bool:
    """Tells whether any option of a dataclass was given. Raises InvalidArgument for an option that is not for this
    kind."""
    typed = [
        option for option in fields(options) if getattr(options, option.name) not in (None, "", [], option.default)
    ]
    for typed_field in typed:
        flag = typed_field.metadata.get("flag") or "--" + typed_field.name.replace("_", "-")
        check_option(flag, kind, typed_field.metadata.get("kinds", KINDS))
    return bool(typed)


def _fields_of(kind: Any) -> list[inspect.Parameter]:
    hints, parameters = get_type_hints(kind, include_extras=True), list[inspect.Parameter]()
    for member in fields(kind):
        if is_dataclass(hints[member.name]):
            parameters += _fields_of(hints[member.name])
        else:
            hint, keyword = hints[member.name], inspect.Parameter.KEYWORD_ONLY
            if (info := member.metadata.get("option")) is not None:
                hint = Annotated[hint, info]
            parameters.append(inspect.Parameter(member.name, keyword, default=member.default, annotation=hint))
    return parameters


def _taken(kind: Any, values: dict[str, Any]) -> Any:
    """Builds a dataclass from the options given for its fields, and removes them from `values`."""
    hints = get_type_hints(kind)
    names = [option.name for option in fields(kind)]
    return kind(**{n: _taken(hints[n], values) if is_dataclass(hints[n]) else values.pop(n) for n in names})


def kind_word(verb: str) -> typer.models.ArgumentInfo:
    """Returns the argument for the kind, which must have the verb. A shell completes it."""

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
NameUnlessMany = Annotated[
    str,
    typer.Argument(
        metavar="[NAME]", help="Its name; a connector's is CLUSTER/NAME, or NAME where unique. Or -l, --all."
    ),
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
ContextName = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="The gateway of a context [KEELMAN_CONTEXT].")
]
Cluster = Annotated[
    str, typer.Option("--cluster", metavar="WC", help="Worker cluster of a connector, worker or copy run.")
]
Form = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="table, wide, json, yaml or name.")]
TextForm = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="text, json or yaml.")]
Worker = Annotated[
    str, typer.Option("--worker", metavar="URL", help="REST address of a worker, in place of the gateway.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not prompt for confirmation.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait, with live progress, until the state is reached.")]
_UNIT_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WAIT = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|h|)")


def duration_of(text: str, legal: re.Pattern[str]) -> float | None:
    """Returns the seconds of a duration such as 7d or 1.5m; None for a text that the pattern does not match. The groups
    of the pattern are a number and a unit."""
    match = legal.fullmatch(text)
    return None if match is None else float(match[1]) * _UNIT_SECONDS[match[2]]


def seconds_of(text: str) -> float:
    """Parses the time of --timeout or --ttl, and returns it in seconds. Raises typer.BadParameter."""
    seconds = duration_of(text.strip(), _WAIT)
    if seconds is None:
        raise typer.BadParameter(f"{text!r} is not legal: seconds, as 90, 90s, 1.5m or 1h")
    return seconds


WaitSeconds = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="How long --wait waits [180]: 90, 90s, 2m.", parser=seconds_of),
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


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """The options --wait and --timeout."""

    wait: Wait = False
    timeout: WaitSeconds = None

    @property
    def seconds(self) -> float | None:
        """The time to wait; None for no wait. Raises InvalidArgument for a time without `--wait`."""
        if self.timeout is not None and not self.wait:
            raise InvalidArgument("--timeout: only together with --wait")
        return (WAIT_SECONDS if self.timeout is None else self.timeout) if self.wait else None
