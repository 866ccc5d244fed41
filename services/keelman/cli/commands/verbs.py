"""`keelman start`, `stop`, `pause`, `resume`, `restart` and `delete`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

import typer

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_FAILED
from keelman.cli import kinds
from keelman.cli.client.changes import wait_for_update
from keelman.cli.client.effects import before, wait_for
from keelman.cli.client.gateway import Gateway
from keelman.cli.client.operations import delete_applied
from keelman.cli.client.rest import Where
from keelman.cli.client.target import GatewayTarget
from keelman.cli.commands.connectors.dedicated import act_dedicated
from keelman.cli.commands.many import Many, each
from keelman.cli.kinds import Kind, check_option, kind_of
from keelman.cli.options import WAIT_SECONDS, Cluster, NameUnlessMany, WaitOptions, command_group, kind_word
from keelman.model.errors import InvalidArgument, NotFound

app = command_group()
DONE = {
    "start": "runs",
    "stop": "stopped",
    "pause": "paused",
    "resume": "runs",
    "restart": "restarted",
    "delete": "deleted",
}


def _verb(verb: str, text: str) -> None:
    def command(
        kind: str,
        name: NameUnlessMany = "",
        *,
        many: Many,
        cluster: Cluster = "",
        waiting: WaitOptions,
        target: GatewayTarget,
    ) -> int:
        noun = kind_of(kind, verb, cluster=cluster)
        do = partial(act, target, verb, kind, cluster=cluster, wait=waiting.seconds)
        return each(target, verb, noun, name, many, do=do, cluster=cluster)

    command.__doc__ = text
    command.__annotations__["kind"] = Annotated[str, kind_word(verb)]
    app.command(verb)(command)


_verb("start", "Start a cluster, or a stopped connector.")
_verb("pause", "Pause a connector, or a dedicated one, and its tasks.")
_verb("resume", "Resume a paused or stopped connector.")


@app.command()
def stop(
    kind: Annotated[str, kind_word("stop")],
    name: NameUnlessMany = "",
    *,
    many: Many,
    force: Annotated[
        bool,
        typer.Option("--force", help="Of a cluster: kill its processes; workers' nodes that are offline do not count."),
    ] = False,
    cluster: Cluster = "",
    waiting: WaitOptions,
    target: GatewayTarget,
) -> int:
    """Stop a cluster or a connector; nothing is lost, also with --force."""
    noun = kind_of(kind, "stop", cluster=cluster)
    if force:
        check_option("--force", noun, [kinds.BROKER_CLUSTERS, kinds.WORKER_CLUSTERS])
    do = partial(act, target, "stop", kind, cluster=cluster, wait=waiting.seconds, force=force)
    return each(target, "stop", noun, name, many, do=do, cluster=cluster)


@app.command()
def restart(
    kind: Annotated[str, kind_word("restart")],
    name: NameUnlessMany = "",
    *,
    many: Many,
    task: Annotated[
        int | None, typer.Option("--task", metavar="N", help="Of a connector: only this task.", min=0)
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Of a connector: only if FAILED, and only its FAILED tasks.")
    ] = False,
    tasks: Annotated[
        bool | None, typer.Option("--tasks/--no-tasks", help="Of a connector: with its tasks or without [--tasks].")
    ] = None,
    cluster: Cluster = "",
    waiting: WaitOptions,
    target: GatewayTarget,
) -> int:
    """Restart a worker, a cluster's workers one after the other, or a connector with its tasks."""
    noun, seconds = kind_of(kind, "restart", cluster=cluster), waiting.seconds
    options = {"--task": task is not None, "--failed": failed, "--tasks/--no-tasks": tasks is not None}
    for option in filter(options.get, options):
        legal = [kinds.CONNECTORS, *([kinds.DEDICATED_CONNECTORS] if option == "--failed" else [])]
        check_option(option, noun, legal)
    if task is not None and (failed or tasks is not None):
        raise InvalidArgument("--task: not together with --failed, --tasks or --no-tasks: it is about one task")
    what = Restart(noun, cluster, task, failed, tasks)

    def do(target_name: str) -> int:
        if noun is kinds.DEDICATED_CONNECTORS:
            return act_dedicated(target, "restart", target_name, wait=seconds, only_failed=failed)
        return _restart(target, target_name, what, seconds)

    return each(target, "restart", noun, name, many, do=do, cluster=cluster)


@dataclass(frozen=True, slots=True)
class Restart:
    """The scope of a restart: all of one, or some of a connector's tasks."""

    kind: Kind
    cluster: str
    task: int | None
    failed: bool
    tasks: bool | None


def _restart(target: GatewayTarget, name: str, what: Restart, seconds: float | None) -> int:
    noun, cluster, task, failed, tasks = what.kind, what.cluster, what.task, what.failed, what.tasks
    about = f", task {task}:" if task is not None else ", its FAILED parts:" if failed else ""

    async def body(client: Gateway) -> None:
        full, more, meant = await client.full_name(noun, name, cluster), dict[str, bool](), None
        if noun is kinds.CONNECTORS:
            more = {"include_tasks": tasks is not False, "only_failed": failed}
            connector = await client.get(noun, full)
            here = connector.tasks
            if task is not None:
                meant = [t.task for t in here if t.task == task]
            else:
                meant = [t.task for t in here if not failed or t.state == CONNECTOR_STATE_FAILED]
            if task is not None and not meant:
                raise NotFound(f"connector {full} has no task {task}: {_numbers(len(here))}")
            if failed and not meant and connector.state != CONNECTOR_STATE_FAILED:
                print(f"{noun.singular}/{full}: neither it nor a task has FAILED: nothing to restart")
                return
        resource: Any = None
        was = None if seconds is None else await before(client, "restart", noun, full, tasks=meant)
        if task is not None:
            await _restart_task(target, *full.partition("/")[::2], task)
        else:
            resource = await client.act("restart", noun, full, of=more)
        if seconds is not None and noun is kinds.WORKER_CLUSTERS:
            await wait_for_update(client, noun, full, generation=resource.generation, seconds=seconds)
        elif seconds is not None:
            await wait_for(client, "restart", noun, full, seconds=seconds, was=was)
        print(f"{noun.singular}/{full}{about} {_outcome('restart', seconds)}")

    return target.run(body)


async def _restart_task(target: GatewayTarget, cluster: str, connector: str, task: int) -> None:
    async with Where(cluster=cluster, target=target).open() as rest:
        await rest.ask("POST", f"/connectors/{quote(connector, safe='')}/tasks/{task}/restart")


@app.command()
def delete(
    kind: Annotated[str, kind_word("delete")],
    name: NameUnlessMany = "",
    *,
    many: Many,
    keep: Annotated[
        bool, typer.Option("--keep", help="Of a topic or definition: the brokers' topic, the connector stays.")
    ] = False,
    cluster: Cluster = "",
    waiting: WaitOptions,
    target: GatewayTarget,
) -> int:
    """Delete one thing, or many; needs a confirmation on a terminal. With a topic or definition goes the topic on the
    brokers, or the connector, which is waited for."""
    noun = kind_of(kind, "delete")
    if keep:
        check_option("--keep", noun, kinds.APPLIED)
    if name and not many.yes and not many.is_given and sys.stdin.isatty():
        typer.confirm(f"delete {noun.singular} {name}?", abort=True, err=True)
    wait = waiting.seconds
    do = partial(act, target, "delete", kind, cluster=cluster, wait=wait)
    if noun in kinds.APPLIED:
        do = partial(_delete_applied, target, noun, keep=keep, seconds=wait or WAIT_SECONDS)
    return each(target, "delete", noun, name, many, do=do, cluster=cluster)


def _delete_applied(target: GatewayTarget, kind: Kind, name: str, *, keep: bool, seconds: float) -> int:
    async def body(client: Gateway) -> None:
        await delete_applied(client, kind, name, keep=keep, seconds=seconds)
        print(f"{kind.singular}/{name} {DONE['delete']}")

    return target.run(body)


def act(
    target: GatewayTarget, verb: str, word: str, name: str, *, cluster: str, wait: float | None, force: bool = False
) -> int:
    """Does the verb on one thing, and waits for its effect."""
    kind = kind_of(word, verb, cluster=cluster)
    if kind is kinds.DEDICATED_CONNECTORS:
        return act_dedicated(target, verb, name, wait=wait)

    async def body(client: Gateway) -> None:
        full = await client.full_name(kind, name, cluster)
        was = None if wait is None else await before(client, verb, kind, full)
        await client.act(verb, kind, full, force=force)
        if wait is not None:
            await wait_for(client, verb, kind, full, seconds=wait, was=was)
        at_once = kind in (kinds.NODES, kinds.OPERATIONS, *kinds.SAID)
        print(f"{kind.singular}/{full} {DONE[verb] if at_once else _outcome(verb, wait)}")

    return target.run(body)


def _outcome(verb: str, wait: float | None) -> str:
    """The text after a finished verb, or after a requested one."""
    if wait is not None:
        return DONE[verb]
    return "deletion requested" if verb == "delete" else f"asked to {verb}"


def _numbers(count: int) -> str:
    return "it has no tasks" if not count else "its only task is 0" if count == 1 else f"its tasks are 0 to {count - 1}"
