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
from keelman.cli.create import Wanted, broker_spec, checked_options, connector_config, pairs, worker_spec
from keelman.cli.describe import print_description
from keelman.cli.exits import OK
from keelman.cli.gateway import Gateway
from keelman.cli.gateway import gateway as open_gateway
from keelman.cli.kinds import Kind, kind_of
from keelman.cli.logs import print_logs
from keelman.cli.output import checked_format, print_list, print_one
from keelman.cli.target import gateway_address, home_of
from keelman.cli.waiting import progress_line, until
from keelman.cli.watch import print_watch
from keelman.model.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument, NotFound
from keelman.runtime.supervise import deadline


@dataclass(frozen=True, slots=True)
class Target:
    """Which gateway: as given on the command line."""

    gateway: str | None
    home: Path | None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        """A client of it. Raises Unavailable at once when it does not answer."""
        address, source = gateway_address(self.gateway, home_of(self.home))
        async with open_gateway(address, source) as client:
            yield client


def get(target: Target, word: str, name: str | None, form: str, *, cluster: str, ended: bool) -> int:
    """`keelman get`."""
    kind, form = kind_of(word), checked_format(form)

    async def body(gateway: Gateway) -> None:
        if name is None:
            print_list(kind, await gateway.list(kind, cluster=cluster, ended=ended), form)
        else:
            print_one(kind, await gateway.get(kind, name, cluster=cluster), form)

    return _with(target, body)


def describe(target: Target, word: str, name: str, *, cluster: str) -> int:
    """`keelman describe`."""
    kind = kind_of(word)

    async def body(gateway: Gateway) -> None:
        await print_description(gateway, kind, await gateway.get(kind, name, cluster=cluster))

    return _with(target, body)


def create(target: Target, word: str, name: str, wanted: Wanted, form: str, *, start: bool, wait: float | None) -> int:
    """`keelman create`. Options are checked before the gateway is asked."""
    kind, form = kind_of(word, "create"), checked_format(form)
    checked_options(kind, wanted, start=start)
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
            owner, plain = _owner(name, wanted.cluster)
            made = await gateway.create_connector(owner, plain, made_of)
        if wait is not None:
            made = await _wait(gateway, "start", kind, columns.key_of(kind, made), wait)
        print_one(kind, made, form)

    return _with(target, body)


def configure(
    target: Target, word: str, name: str, *, values: Sequence[str], gone: Sequence[str], form: str, cluster: str
) -> int:
    """`keelman configure`."""
    kind, form, given = kind_of(word, "configure"), checked_format(form), pairs("--set", values)
    if not given and not gone:
        raise InvalidArgument("nothing to change: give --set KEY=VALUE or --unset KEY")
    if both := sorted(set(given) & set(gone)):
        raise InvalidArgument(f"--unset: {both[0]} is also given with --set")

    async def body(gateway: Gateway) -> None:
        connector = await gateway.get(kind, name, cluster=cluster)
        config = {**connector.config, **given}
        for key in gone:
            if key not in config:
                raise InvalidArgument(f"--unset: connector {connector.name} has no {key}")
            del config[key]
        print_one(kind, await gateway.configure_connector(connector.worker_cluster, connector.name, config), form)

    return _with(target, body)


def watch(target: Target, word: str, form: str, *, cluster: str, connector: str) -> int:
    """`keelman watch`; an interrupt is its usual end."""
    kind_of(word, "watch")
    form = checked_format(form, WATCH_FORMATS)
    shown = form if sys.stdout.isatty() else "json"

    async def body(gateway: Gateway) -> None:
        await print_watch(gateway, cluster=cluster, connector=connector, form=shown)

    with contextlib.suppress(KeyboardInterrupt):
        _with(target, body)
    return OK


def act(target: Target, verb: str, word: str, name: str, *, cluster: str, wait: float | None) -> int:
    """`keelman start`, `stop`, `pause`, `resume`, `restart`, `delete`."""
    kind = kind_of(word, verb)

    async def body(gateway: Gateway) -> None:
        full = name
        if kind is kinds.CONNECTORS:
            full = "/".join(await gateway.connector_name(name, cluster))
        before = await gateway.get(kind, full) if verb == "restart" and kind is kinds.WORKERS else None
        await gateway.act(verb, kind, full)
        if wait is not None:
            await _wait(gateway, verb, kind, full, wait, before=before)
        print(f"{kind.singular}/{full} {DONE[verb] if wait is not None else ASKED[verb]}")

    return _with(target, body)


def logs(target: Target, word: str, name: str, *, cluster: str, follow: bool, tail: int) -> int:
    """`keelman logs`."""
    kind = kind_of(word)

    async def body(gateway: Gateway) -> None:
        await print_logs(gateway, kind, await gateway.get(kind, name, cluster=cluster), follow=follow, tail=tail)

    return _with(target, body)


WATCH_FORMATS = ("table", "wide", "json")
ASKED = {
    "start": "asked to start",
    "stop": "asked to stop",
    "pause": "asked to pause",
    "resume": "asked to resume",
    "restart": "asked to restart",
    "delete": "asked to go",
}
DONE = {
    "start": "runs",
    "stop": "stopped",
    "pause": "paused",
    "resume": "runs",
    "restart": "runs again",
    "delete": "deleted",
}


def _with(target: Target, body: Callable[[Gateway], Awaitable[None]]) -> int:
    async def whole() -> None:
        async with target.open() as gateway:
            await body(gateway)

    asyncio.run(whole())
    return OK


def _owner(name: str, cluster: str) -> tuple[str, str]:
    owner, slash, plain = name.partition("/")
    if cluster:
        return cluster, name
    if not slash:
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, or NAME with --cluster WC")
    return owner, plain


async def _wait(gateway: Gateway, verb: str, kind: Kind, name: str, seconds: float, *, before: Any = None) -> Any:
    """Waits until a verb has had its effect, showing the state on stderr; returns the resource."""
    latest: Any = None

    with progress_line() as line:

        async def reached() -> bool:
            nonlocal latest
            try:
                latest = await gateway.get(kind, name)
            except NotFound:
                if verb == "delete":
                    return True
                raise
            state, done = _state(kind, latest), False
            line.say(f"{kind.singular}/{name} {state}{_detail(kind, latest)}")
            if verb in ("start", "resume", "restart"):
                done = state == "RUNNING" and not (before is not None and _same_process(before, latest))
                if kind is kinds.CONNECTORS:
                    done = done and bool(latest.tasks) and all(t.state == "RUNNING" for t in latest.tasks)
            elif verb != "delete":
                done = state == {"stop": "STOPPED", "pause": "PAUSED"}[verb]
            if kind is kinds.CONNECTORS and not done:
                _raise_failure(name, latest)
            return done

        what = f"{kind.singular}/{name} did not get there in {seconds:.0f} s"
        late = DeadlineExceeded(f"{what}: see `keelman describe {kind.singular} {name}`")
        async with deadline(seconds, late):
            await until(reached)
    sys.stderr.flush()
    return latest


def _state(kind: Kind, resource: Any) -> str:
    if kind is kinds.CONNECTORS:
        return str(resource.state)
    if kind is kinds.WORKERS:
        return columns.process_state(resource.process)
    return columns.cluster_state(resource)


def _detail(kind: Kind, resource: Any) -> str:
    if kind is kinds.WORKER_CLUSTERS:
        told = f" {resource.status.ready_workers}/{resource.status.wanted_workers} workers"
        return told + (f": {resource.status.message}" if resource.status.message else "")
    if kind is kinds.BROKER_CLUSTERS and resource.status.message:
        return f": {resource.status.message}"
    return ""


def _same_process(before: Any, now: Any) -> bool:
    return bool(before.process.pid == now.process.pid and before.process.start_time == now.process.start_time)


def _raise_failure(name: str, connector: Any) -> None:
    traces = [connector.trace] if connector.state == "FAILED" else []
    traces += [t.trace for t in connector.tasks if t.state == "FAILED"]
    if traces:
        raise FailedPrecondition(f"connector {name} failed: {columns.why_line(traces[0])}")
