"""`keelman get --watch`: present resources, then each change. Survives restarts of the gateway and the state
service."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1.worker_pb2 import Worker
from keelman.api.event.v1.event_pb2 import EVENT_TYPE_DELETED, Event
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway, print_unreachable
from keelman.cli.kinds import Kind
from keelman.cli.output import columns
from keelman.cli.output.printing import plain, print_list, table
from keelman.model.errors import Unavailable
from keelman.rpc.watching import resource_of, watch, watch_connectors
from keelman.runtime.supervise import supervise

LOOK_SECONDS = 1.0
REPORTED_SECONDS, LAG_SECONDS = 2.0, 10.0
"""Intervals of lists, for fields that no event has. For connectors, of which there may be many, only the lag."""
NOUNS: Mapping[Kind, str] = {
    kinds.NODES: "node",
    kinds.BROKER_CLUSTERS: "broker_cluster",
    kinds.WORKER_CLUSTERS: "worker_cluster",
    kinds.WORKERS: "workload",
    kinds.WORKLOADS: "workload",
    kinds.PLUGINS: "plugin",
    kinds.DEFINITIONS: "connector_definition",
    kinds.WORKER_CONFIGURATIONS: "worker_configuration",
    kinds.DEDICATED_CONNECTORS: "dedicated_connector",
    kinds.PLUGIN_IMPORTS: "plugin_import",
    kinds.SECRETS: "secret",
    kinds.SPARK_CLUSTERS: "spark_cluster",
    kinds.OPERATIONS: "operation",
    kinds.DOCUMENTS: "document",
}
WATCHED = (*NOUNS, kinds.CONNECTORS)
"""The kinds that a watch has."""
# Fields that agents and workers report and that no event has: lists have them.
REPORTED: Mapping[Kind, Sequence[str]] = {
    kinds.CONNECTORS: ("lag_records", "lag_bytes"),
    kinds.NODES: ("status.heartbeat_time", "status.figures", "status.pinned_workloads"),
    kinds.WORKER_CLUSTERS: ("status.problems", "status.problem_connectors", "status.verdict"),
    kinds.WORKERS: ("membership", "usage"),
    kinds.WORKLOADS: ("status.memory_bytes", "status.observe_time"),
    kinds.PLUGINS: ("worker_clusters",),
    kinds.WORKER_CONFIGURATIONS: ("users",),
    kinds.DEDICATED_CONNECTORS: ("status",),
    kinds.PLUGIN_IMPORTS: ("users",),
    kinds.SECRETS: ("users",),
    kinds.SPARK_CLUSTERS: ("status", "users"),
    kinds.DEFINITIONS: ("status.connector", "status.drifted", "status.drifts"),
}
# What of it changes all the time: a table shows it, lines are not printed for it.
RESTLESS: Mapping[Kind, Sequence[str]] = {
    kinds.CONNECTORS: ("lag_records", "lag_bytes"),
    kinds.NODES: ("status.heartbeat_time", "status.figures"),
    kinds.WORKERS: ("usage", "membership.report_time"),
    kinds.WORKLOADS: ("status.memory_bytes", "status.observe_time"),
}


class WatchedResources:
    """The resources of a kind as `--watch` shows them: from events, with fields that only lists have. `is_shown`
    chooses among them."""

    def __init__(self, kind: Kind, is_shown: Callable[[Any], bool]) -> None:
        self._kind = kind
        self._wanted = is_shown
        self._known: dict[str, Any] = {}
        self._reported: dict[str, Any] = {}
        self._last: dict[str, Any] = {}

    def fold(self, events: Iterable[Event]) -> list[tuple[str, Any]]:
        """Takes changes in; returns the resources to show, in order: None for a deleted one."""
        changed = []
        for event in events:
            resource = shown_as(self._kind, event)
            if resource is not None:
                is_gone = event.type == EVENT_TYPE_DELETED
                changed.append((columns.key_of(self._kind, resource), None if is_gone else resource))
        return self.take(changed)

    def take(self, changed: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """The same for resources by their names; None for a deleted one."""
        lines = []
        for key, resource in changed:
            if resource is None:
                self._known.pop(key, None)
                self._reported.pop(key, None)
            else:
                self._known[key] = resource
            lines += self._news(key)
        return lines

    def report(self, listed: Iterable[Any]) -> list[tuple[str, Any]]:
        """Takes in a list; returns the resources to show."""
        self._reported = {columns.key_of(self._kind, resource): resource for resource in listed}
        return [line for key in self._known for line in self._news(key)]

    def all(self) -> list[Any]:
        """Everything as it is shown now, by name."""
        shown = (self._merged(key) for key in sorted(self._known))
        return [resource for resource in shown if self._wanted(resource)]

    def _news(self, key: str) -> list[tuple[str, Any]]:
        merged = self._merged(key) if key in self._known else None
        if merged is None or not self._wanted(merged):
            return [(key, None)] if self._last.pop(key, None) is not None else []
        essence = type(merged)()
        essence.CopyFrom(merged)
        for path in RESTLESS.get(self._kind, ()):
            _clear(essence, path)
        if self._last.get(key) == essence:
            return []
        self._last[key] = essence
        return [(key, merged)]

    def _merged(self, key: str) -> Any:
        merged = type(self._known[key])()
        merged.CopyFrom(self._known[key])
        if key in self._reported and self._kind in REPORTED:
            _merge(REPORTED[self._kind], self._reported[key], merged)
        return merged


def shown_as(kind: Kind, event: Event) -> Any:
    """The resource of an event as this kind shows it; None if it is of another kind."""
    resource = resource_of(event)
    if kind is not kinds.WORKERS:
        return resource
    if resource.spec.WhichOneof("kind") != "worker":
        return None
    spec = resource.spec.worker
    host = f"[{spec.host}]" if ":" in spec.host else spec.host
    return Worker(
        name=resource.name.removeprefix("worker/"),
        worker_cluster=spec.worker_cluster,
        node=resource.node,
        rest_url=f"{'https' if spec.https else 'http'}://{host}:{spec.port}",
        process=resource.status if resource.HasField("status") else None,
    )


def _merge(paths: Sequence[str], reported: Any, merged: Any) -> None:
    """Puts reported fields into a message. A mask would set unknown fields to 0."""
    unknown = [p for p in paths if "." not in p and reported.DESCRIPTOR.fields_by_name[p].has_presence]
    unknown = [p for p in unknown if not reported.HasField(p)]
    FieldMask(paths=[p for p in paths if p not in unknown]).MergeMessage(reported, merged, True, True)
    for path in unknown:
        merged.ClearField(path)


def _key(kind: Kind, full: str) -> str:
    """The name that events have for a resource."""
    if kind is kinds.PLUGINS:
        return full.replace(":", "/")
    return f"worker/{full}" if full and kind is kinds.WORKERS else full


def _clear(message: Any, path: str) -> None:
    *outer, last = path.split(".")
    for name in outer:
        if not message.HasField(name):
            return
        message = getattr(message, name)
    message.ClearField(last)


async def follow(
    client: Gateway, kind: Kind, is_shown: Callable[[Any], bool], form: str, *, name: str | None, cluster: str
) -> None:
    """Shows the resources of a kind of WATCHED, then each change, for ever.

    Raises NotFound for a name or cluster that does not exist.
    """
    full = "" if name is None else await client.full_name(kind, name, cluster)
    if full:
        await client.get(kind, full)
    elif cluster:
        await client.list(kind, cluster=cluster)

    def keep(resource: Any) -> bool:
        return (
            is_shown(resource)
            and full in ("", columns.key_of(kind, resource))
            and cluster
            in ("", (resource.spec if kind is kinds.DEFINITIONS else resource).worker_cluster if cluster else "")
        )

    followed = WatchedResources(kind, keep)
    changes = _changes(client, kind, followed, full, cluster)
    with _screen(kind, form) as show:

        async def list_now() -> list[Any]:
            try:
                return list(await client.list(kind, cluster=cluster))
            except Unavailable:
                return []

        async def hear() -> None:
            first = True
            async for take in changes:
                if first and kind in REPORTED:
                    followed.report(await list_now())
                first = False
                show(take(), followed)

        async def look() -> None:
            while True:
                await asyncio.sleep(pace_of(kind))
                if listed := await list_now():
                    show(followed.report(listed), followed)

        moves = kind in REPORTED and (kind not in RESTLESS or kind is kinds.WORKERS or _on_screen(form))
        await supervise(hear, *([look] if moves else []))


def pace_of(kind: Kind) -> float:
    """Seconds between two lists of a kind that is followed."""
    return LAG_SECONDS if kind is kinds.CONNECTORS else REPORTED_SECONDS


async def _changes(
    client: Gateway, kind: Kind, followed: WatchedResources, full: str, cluster: str
) -> AsyncIterator[Callable[[], list[tuple[str, Any]]]]:
    """Yields a function for each change of a kind: it takes the change in and returns the resources to show."""
    if kind is kinds.CONNECTORS:
        owner, _, name = full.partition("/")
        watched = watch_connectors(client.link, worker_cluster=owner or cluster, name=name, on_away=_say_away)
        printed: dict[str, str] = {}
        async for state, connectors in watched:
            for key, reason in state.unreachable.items():
                if printed.get(key) != reason:
                    print_unreachable(key, reason)
            printed = dict(state.unreachable)
            yield partial(followed.take, [("/".join(key), connector) for key, connector in connectors])
        return
    async for _, events in watch(client.link, [NOUNS[kind]], name=_key(kind, full), on_away=_say_away):
        yield partial(followed.fold, events)


async def look_again(
    client: Gateway, kind: Kind, find: Callable[[Gateway], Awaitable[Sequence[Any]]], form: str
) -> None:
    """The same for kinds without a watch: polls."""
    before: dict[str, Any] = {}
    with _screen(kind, form) as show:
        async for resources in _answers(client, find):
            now = {columns.key_of(kind, resource): resource for resource in resources}
            changed: list[tuple[str, Any]] = [
                (key, resource) for key, resource in now.items() if before.get(key) != resource
            ]
            changed += [(key, None) for key in before.keys() - now.keys()]
            show(changed, resources)
            before = now


async def _answers(
    client: Gateway, find: Callable[[Gateway], Awaitable[Sequence[Any]]]
) -> AsyncIterator[Sequence[Any]]:
    answered, away = False, False
    while True:
        try:
            yield await find(client)
        except Unavailable as error:
            if not answered:
                raise
            if not away:
                _say_away(error)
            away = True
        else:
            answered, away = True, False
        await asyncio.sleep(LOOK_SECONDS)


def _say_away(error: Unavailable) -> None:
    print(f"keelman: {error.message}; changes in the meantime are shown later", file=sys.stderr, flush=True)


def _on_screen(form: str) -> bool:
    return form != "json" and sys.stdout.isatty()


@contextlib.contextmanager
def _screen(kind: Kind, form: str) -> Any:
    """What shows changes: on a terminal one table in place, elsewhere a line for each."""
    if not _on_screen(form):
        yield lambda changed, everything: _print(kind, changed, form)
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    with Live(console=Console(highlight=False), auto_refresh=False, vertical_overflow="crop") as live:

        def show(changed: Sequence[tuple[str, Any]], everything: Any) -> None:
            shown = everything.all() if isinstance(everything, WatchedResources) else everything
            rows = (
                table(kind, shown, wide=form == "wide", room=live.console.width) if shown else f"no {kind.plural} now"
            )
            live.update(rows, refresh=True)

        yield show


def _print(kind: Kind, changed: Sequence[tuple[str, Any]], form: str) -> None:
    """Prints a table for changes that come together; a deleted resource is a remark in between."""
    together: list[Any] = []
    for key, resource in changed:
        if resource is not None and form == "json":
            print(json.dumps(plain(resource), ensure_ascii=False), flush=True)
        elif resource is not None:
            together.append(resource)
        else:
            print(f"{kind.singular}/{key} is gone", file=sys.stderr, flush=True)
    if together:
        print_list(kind, together, form)
    sys.stdout.flush()
