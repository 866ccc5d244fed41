"""What the commands do once their words are understood: ask the gateway, print, wait."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keelman.cli import columns, kinds
from keelman.cli.create import (
    Wanted,
    broker_spec,
    checked_options,
    connector_config,
    pairs,
    read_config,
    worker_spec,
)
from keelman.cli.describe import print_description
from keelman.cli.exits import OK
from keelman.cli.gateway import Gateway
from keelman.cli.gateway import gateway as open_gateway
from keelman.cli.kinds import cluster_and_name, kind_of
from keelman.cli.logs import print_logs
from keelman.cli.output import checked_format, print_list, print_one
from keelman.cli.reached import before, wait_for
from keelman.cli.target import gateway_address, home_of
from keelman.cli.watch import print_watch
from keelman.model.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Target:
    """Which gateway: as given on the command line."""

    gateway: str | None
    home: Path | None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        """A client of it. Raises Unavailable as `open_gateway`."""
        address, source = gateway_address(self.gateway, home_of(self.home))
        async with open_gateway(address, source) as client:
            yield client


def get(target: Target, word: str, name: str | None, form: str, *, cluster: str, ended: bool) -> int:
    """`keelman get`."""
    kind, form = kind_of(word, cluster=cluster), checked_format(form)
    if ended and kind is not kinds.COPY_RUNS:
        raise InvalidArgument(f"--ended: not for {kind.plural}, only for {kinds.COPY_RUNS.plural}")

    async def body(gateway: Gateway) -> None:
        if name is None:
            found = await gateway.list(kind, cluster=cluster, ended=ended)
            print_list(kind, found, form)
            if kind is kinds.CONNECTORS and not found:
                for told in at_rest(await gateway.list(kinds.WORKER_CLUSTERS), cluster):
                    print(told, file=sys.stderr)
        else:
            print_one(kind, await gateway.get(kind, name, cluster=cluster), form)

    return _with(target, body)


def at_rest(clusters: Sequence[Any], only: str) -> list[str]:
    """What to say of worker clusters that do not run: they may have connectors, which only their workers could show."""
    return [
        f"worker cluster {c.name} is {columns.cluster_state(c)}: what connectors it has is known once it runs"
        for c in clusters
        if not c.status.ready_workers and only in ("", c.name)
    ]


def describe(target: Target, word: str, name: str, *, cluster: str) -> int:
    """`keelman describe`."""
    kind = kind_of(word, cluster=cluster)

    async def body(gateway: Gateway) -> None:
        await print_description(gateway, kind, await gateway.get(kind, name, cluster=cluster))

    return _with(target, body)


def create(target: Target, word: str, name: str, wanted: Wanted, form: str, *, start: bool, wait: float | None) -> int:
    """`keelman create`. Options are checked before the gateway is asked."""
    kind, form = kind_of(word, "create"), checked_format(form)
    checked_options(kind, wanted, start=start)
    owner, plain = cluster_and_name(kind, name, wanted.cluster)
    if kind is kinds.CONNECTORS and not owner:
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, or NAME with --cluster WC")
    if wait is not None and kind is kinds.WORKER_CLUSTERS and not start:
        raise InvalidArgument("--wait: a new worker cluster is stopped; give --start too, or wait on `keelman start`")
    made_of: Any = {
        kinds.BROKER_CLUSTERS: broker_spec,
        kinds.WORKER_CLUSTERS: worker_spec,
        kinds.CONNECTORS: connector_config,
    }[kind](wanted)

    async def body(gateway: Gateway) -> None:
        if kind is kinds.BROKER_CLUSTERS:
            made = await gateway.create_broker_cluster(name, made_of)
        elif kind is kinds.WORKER_CLUSTERS:
            made = await gateway.create_worker_cluster(name, made_of)
            if start:
                made = await gateway.act("start", kind, name)
        else:
            made = await gateway.create_connector(owner, plain, made_of)
        if wait is not None:
            made = await wait_for(gateway, "start", kind, columns.key_of(kind, made), seconds=wait)
        print_one(kind, made, form)

    return _with(target, body)


@dataclass(frozen=True, slots=True)
class Changes:
    """What `keelman configure` is to change: the configuration itself for a file's, then values and keys of it."""

    file: Path | None
    values: tuple[str, ...]
    gone: tuple[str, ...]


def configure(
    target: Target, word: str, name: str, changes: Changes, form: str, *, cluster: str, wait: float | None
) -> int:
    """`keelman configure`."""
    kind, form, given = kind_of(word, "configure"), checked_format(form), pairs("--set", changes.values)
    file, gone = changes.file, changes.gone
    if file is None and not given and not gone:
        raise InvalidArgument("nothing to change: give --config-file FILE, --set KEY=VALUE or --unset KEY")
    whole = None if file is None else read_config(file)
    if both := sorted(set(given) & set(gone)):
        raise InvalidArgument(f"--unset: {both[0]} is also given with --set")

    async def body(gateway: Gateway) -> None:
        connector = await gateway.get(kind, name, cluster=cluster)
        config = {**(connector.config if whole is None else whole), **given}
        for key in gone:
            if key not in config:
                where = f"connector {connector.name}" if file is None else file
                raise InvalidArgument(f"--unset: {where} has no {key}")
            del config[key]
        full = columns.key_of(kind, connector)
        changed = {key for key in {**connector.config, **config} if connector.config.get(key) != config.get(key)}
        lives_on = all(key.startswith(LIMITS) for key in changed)
        was = None if wait is None or lives_on else await before(gateway, "configure", kind, full)
        made = await gateway.configure_connector(connector.worker_cluster, connector.name, config)
        if wait is not None:
            made = await wait_for(gateway, "configure", kind, full, seconds=wait, was=was)
        print_one(kind, made, form)

    return _with(target, body)


def watch(target: Target, word: str, form: str, *, cluster: str, connector: str) -> int:
    """`keelman watch`; an interrupt is its usual end."""
    kind_of(word, "watch")
    form = checked_format(form, WATCH_FORMATS)
    shown = form if sys.stdout.isatty() else "json"

    async def body(gateway: Gateway) -> None:
        of, plain = cluster, connector
        if connector:
            found = await gateway.get(kinds.CONNECTORS, connector, cluster=cluster)
            of, plain = found.worker_cluster, found.name
        await print_watch(gateway, cluster=of, connector=plain, form=shown)

    with contextlib.suppress(KeyboardInterrupt):
        _with(target, body)
    return OK


def act(target: Target, verb: str, word: str, name: str, *, cluster: str, wait: float | None) -> int:
    """`keelman start`, `stop`, `pause`, `resume`, `restart`, `delete`."""
    kind = kind_of(word, verb, cluster=cluster)

    async def body(gateway: Gateway) -> None:
        full = await gateway.full_name(kind, name, cluster)
        was = None if wait is None else await before(gateway, verb, kind, full)
        await gateway.act(verb, kind, full)
        if wait is not None:
            await wait_for(gateway, verb, kind, full, seconds=wait, was=was)
        print(f"{kind.singular}/{full} {DONE[verb] if wait is not None else ASKED[verb]}")

    return _with(target, body)


def logs(target: Target, word: str, name: str, *, cluster: str, follow: bool, tail: int) -> int:
    """`keelman logs`."""
    kind = kind_of(word, cluster=cluster)

    async def body(gateway: Gateway) -> None:
        await print_logs(gateway, kind, await gateway.get(kind, name, cluster=cluster), follow=follow, tail=tail)

    return _with(target, body)


LIMITS = "keelman.limit."
"""Keys that change while the copy runs of a connector live on."""
WATCH_FORMATS = ("table", "wide", "json")
ASKED = {
    "start": "asked to start",
    "stop": "asked to stop",
    "pause": "asked to pause",
    "resume": "asked to resume",
    "restart": "asked to restart",
    "delete": "deletion requested",
}
DONE = {
    "start": "runs",
    "stop": "stopped",
    "pause": "paused",
    "resume": "runs",
    "restart": "restarted",
    "delete": "deleted",
}


def _with(target: Target, body: Callable[[Gateway], Awaitable[None]]) -> int:
    async def whole() -> None:
        async with target.open() as gateway:
            await body(gateway)

    asyncio.run(whole())
    return OK
