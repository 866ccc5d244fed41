"""Applies a verb to one thing, or to many: those with some labels, or all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import typer

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.target import GatewayTarget
from keelman.cli.exits import OK, exit_code_of, print_error
from keelman.cli.kinds import Kind
from keelman.cli.options import Yes, option
from keelman.cli.output.columns import key_of
from keelman.cli.output.words import owner_text
from keelman.cli.selectors import selector_of
from keelman.model.errors import InvalidArgument, KeelmanError

MAX_NAMED = 20
"""In a question; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Many:
    """Options that choose many, in place of a name."""

    selector: list[str] | None = option(
        "-l --selector", "SELECTOR", "In place of NAME: all with these labels: K=V, K!=V, K in (A,B), K."
    )
    all: bool = option("--all", None, "In place of NAME: all of them; prompts first on a terminal.", default=False)
    yes: Yes = False

    @property
    def is_given(self) -> bool:
        """Whether several resources are selected."""
        return self.all or bool(self.selector)


def each(
    target: GatewayTarget, verb: str, kind: Kind, name: str, many: Many, *, do: Callable[[str], int], cluster: str = ""
) -> int:
    """Applies an action to the named resource, or to each selected one in turn. Returns the exit code; of several, that
    of the first failure. With several, an error is a line on stderr, and the rest follow.

    Raises InvalidArgument where neither a name nor many are given, or both.
    """
    if not many.is_given:
        if not name:
            raise InvalidArgument(f"NAME: missing: the {kind.singular} to {verb}; or select several with -l or --all")
        return do(name)
    if name:
        raise InvalidArgument(f"{'--all' if many.all else '-l'}: not together with a name ({name})")
    if many.all and many.selector:
        raise InvalidArgument("--all: not together with -l, which selects some")
    names = _meant(target, kind, many, cluster)
    if not names:
        print(f"no {kind.plural}{' with these labels' if many.selector else ''}", file=sys.stderr)
        return OK
    if not many.yes and sys.stdin.isatty():
        typer.confirm(question(verb, kind, names), abort=True, err=True)
    worst = OK
    for target_name in names:
        try:
            code = do(target_name)
        except KeelmanError as error:
            print_error(f"{kind.singular}/{target_name}: {error.message}")
            code = exit_code_of(error)
        worst = worst or code
    return worst


def question(verb: str, kind: Kind, names: list[str]) -> str:
    """The question before an action on several resources."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    what = kind.singular if len(names) == 1 else kind.plural
    return f"{verb} {len(names)} {what}: {', '.join(names[:MAX_NAMED])}{more}?"


def _meant(target: GatewayTarget, kind: Kind, many: Many, cluster: str) -> list[str]:
    """The names of the selected resources, without those that another resource owns."""
    chosen = selector_of(kind, many.selector or ())
    names: list[str] = []

    async def find(client: Gateway) -> None:
        for resource in await client.list(kind, cluster=cluster, labels=chosen.equal):
            owned = kind is kinds.WORKER_CLUSTERS and owner_text(resource.spec.origin)
            if chosen(resource) and not owned:
                names.append(key_of(kind, resource))

    target.run(find)
    return names
