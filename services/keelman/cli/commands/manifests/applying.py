"""`keelman apply`, of files or of one topic or definition, and `keelman cancel`, which ends operations early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.operations import ABSENT, begin, follow, goals
from keelman.cli.client.target import GatewayTarget
from keelman.cli.commands.manifests.options import ManifestOptions
from keelman.cli.kinds import Kind, check_option, kind_of
from keelman.cli.options import PlainName, WaitOptions, command_group, kind_word, option
from keelman.cli.output.operations import operation_state
from keelman.model.errors import InvalidArgument

app = command_group()


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The options for the goal of a resource."""

    running: bool = option("--running", None, "Of a definition: its connector runs.", default=False)
    paused: bool = option("--paused", None, "Of a definition: its connector is paused.", default=False)
    stopped: bool = option("--stopped", None, "Of a definition: its connector exists, stopped.", default=False)
    absent: bool = option(
        "--absent", None, "Delete the connector or topic; its definition or resource stays.", default=False
    )

    @property
    def given(self) -> dict[str, bool]:
        """Which were typed, by the goals."""
        return {"RUNNING": self.running, "PAUSED": self.paused, "STOPPED": self.stopped, ABSENT: self.absent}


@app.command()
def apply(
    kind: Annotated[str, kind_word("apply")] = "",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Its name.")] = "",
    *,
    goals: Goals,
    files: ManifestOptions,
    waiting: WaitOptions,
    target: GatewayTarget,
) -> int:
    """Apply manifests (-f): create and change resources until they match. Or apply one topic or definition: its brokers
    or its connector get the last goal, at first to exist and to run."""
    typed = [f"--{goal.lower()}" for goal, is_given in goals.given.items() if is_given]
    if files.paths:
        if kind or typed:
            raise InvalidArgument(f"-f: not together with {kind or typed[0]}: the files name the resources")
        from keelman.cli.commands.manifests.manifests import apply_files  # noqa: PLC0415

        return apply_files(target, files, waiting.seconds)
    if not kind or not name:
        raise InvalidArgument("use -f FILE, or KIND and NAME of a topic or definition: see `keelman apply --help`")
    files.check_none()
    noun, seconds = kind_of(kind, "apply"), waiting.seconds
    goal = goal_given(noun, goals.given)

    async def body(client: Gateway) -> None:
        await apply_and_print(client, noun, name, goal, seconds)

    return target.run(body)


async def apply_and_print(client: Gateway, kind: Kind, name: str, goal: str, seconds: float | None) -> None:
    """Begins an operation, and waits for its end if seconds are given; prints the outcome."""
    operation = await begin(client, kind, name, goal)
    if seconds is None:
        print(f"{kind.singular}/{name} is being applied as {operation.target.goal}: operation/{operation.name}")
        return
    await follow(client, operation.name, seconds=seconds)
    print(f"{kind.singular}/{name} {operation.target.goal}")


def goal_given(kind: Kind, typed_goals: Mapping[str, bool]) -> str:
    """The goal whose option was given; empty where none was. Raises InvalidArgument for two goals, and for a goal that
    this kind does not have."""
    named = [goal for goal, typed in typed_goals.items() if typed]
    for goal in named:
        if goal not in goals(kind):
            check_option(f"--{goal.lower()}", kind, [kinds.DEFINITIONS])
    if len(named) > 1:
        raise InvalidArgument(f"--{named[1].lower()}: not together with --{named[0].lower()}: choose one of them")
    return named[0] if named else ""


@app.command()
def cancel(
    kind: Annotated[str, kind_word("cancel")],
    name: PlainName,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, for people.")] = "",
    waiting: WaitOptions,
    target: GatewayTarget,
) -> int:
    """Cancel an operation; its finished steps are undone where possible."""
    noun, seconds = kind_of(kind, "cancel"), waiting.seconds

    async def body(client: Gateway) -> None:
        await client.call("Cancel", noun, name=name, reason=reason)
        if seconds is None:
            print(f"{noun.singular}/{name} is being canceled")
            return
        ended: Any = await follow(client, name, seconds=seconds, canceled=True)
        print(f"{noun.singular}/{name} {operation_state(ended)}")

    return target.run(body)
