"""`keelman apply` and `keelman cancel`: operations on topics and definitions, begun and ended before their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.operations import ABSENT, begin, follow, goals
from keelman.cli.client.target import Target
from keelman.cli.kinds import Kind, check_option, kind_of
from keelman.cli.options import (
    GatewayAddress,
    HomeFolder,
    PlainName,
    Wait,
    WaitSeconds,
    command_group,
    kind_word,
    seconds_of,
)
from keelman.cli.output.operations import operation_state
from keelman.model.errors import InvalidArgument

app = command_group()


@app.command()
def apply(
    kind: Annotated[str, kind_word("apply")],
    name: PlainName,
    *,
    running: Annotated[bool, typer.Option("--running", help="Of a definition: its connector is to run.")] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Of a definition: its connector is to be paused.")] = False,
    stopped: Annotated[
        bool, typer.Option("--stopped", help="Of a definition: its connector is to be there, stopped.")
    ] = False,
    absent: Annotated[
        bool, typer.Option("--absent", help="The connector or topic is to be gone; what defines it stays.")
    ] = False,
    wait: Wait = False,
    timeout: WaitSeconds = None,
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Bring a topic's brokers, or a definition's connector, to what is wanted of it: as asked for last, at first to be
    there and to run."""
    found, seconds = kind_of(kind, "apply"), seconds_of(wait, timeout)
    goal = goal_given(found, {"RUNNING": running, "PAUSED": paused, "STOPPED": stopped, ABSENT: absent})

    async def body(client: Gateway) -> None:
        await apply_and_tell(client, found, name, goal, seconds)

    return Target(gateway, home).run(body)


async def apply_and_tell(client: Gateway, kind: Kind, name: str, goal: str, seconds: float | None) -> None:
    """Begins an operation, and waits for its end where seconds are given; prints what came of it."""
    operation = await begin(client, kind, name, goal)
    if seconds is None:
        print(f"{kind.singular}/{name} asked to be {operation.target.goal}: operation/{operation.name}")
        return
    await follow(client, operation.name, seconds=seconds)
    print(f"{kind.singular}/{name} {operation.target.goal}")


def goal_given(kind: Kind, given: Mapping[str, bool]) -> str:
    """The goal whose option was given; empty where none was. Raises InvalidArgument for two, and for one that is not of
    this kind."""
    named = [goal for goal, typed in given.items() if typed]
    for goal in named:
        if goal not in goals(kind):
            check_option(f"--{goal.lower()}", kind, [kinds.DEFINITIONS])
    if len(named) > 1:
        raise InvalidArgument(f"--{named[1].lower()}: not together with --{named[0].lower()}: it can be one of them")
    return named[0] if named else ""


@app.command()
def cancel(
    kind: Annotated[str, kind_word("cancel")],
    name: PlainName,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for people.")] = "",
    wait: Wait = False,
    timeout: WaitSeconds = None,
    gateway: GatewayAddress = None,
    home: HomeFolder = None,
) -> int:
    """Ask an operation to end; what it has done is taken back where that is possible."""
    found, seconds = kind_of(kind, "cancel"), seconds_of(wait, timeout)

    async def body(client: Gateway) -> None:
        await client.call("Cancel", found, name=name, reason=reason)
        if seconds is None:
            print(f"{found.singular}/{name} asked to end")
            return
        ended: Any = await follow(client, name, seconds=seconds, canceled=True)
        print(f"{found.singular}/{name} {operation_state(ended)}")

    return Target(gateway, home).run(body)


async def delete_applied(client: Gateway, kind: Kind, name: str, *, keep: bool, seconds: float) -> None:
    """Deletes a topic or a definition; first, unless it is to stay, its topic on the brokers or its connector."""
    found = await client.get(kind, name)
    field = "keep_topic" if kind is kinds.TOPICS else "keep_connector"
    if not keep and is_applied(found):
        operation = await begin(client, kind, name, ABSENT)
        await follow(client, operation.name, seconds=seconds)
    await client.call("Delete", kind, name=name, **{field: keep})


def is_applied(found: Any) -> bool:
    """Whether a topic or a connector may be there that was made by what defines it."""
    return bool(found.status.applied_generation) or found.goal > 1
