"""Reads the connector classes of running worker clusters, and caches them for a minute, since forms need them often."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import orjson

from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster
from keelman.gateway.ohara.connectors.class_settings import Json, class_of_keys, generic_class
from keelman.gateway.ohara.connectors.kept_classes import KeptClasses
from keelman.gateway.ohara.definitions.config import is_ohara_class
from keelman.model.errors import DeadlineExceeded, Internal, KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline
from keelman.workers.rest.asking import ClusterRequests
from keelman.workers.rest.client import Outgoing
from keelman.workers.rest.connectors import refusal

log = get_logger()
HEADERS = ((b"content-type", b"application/json"), (b"accept", b"application/json"))
FRESH_SECONDS = 60.0
MAX_REMEMBERED = 2000
AT_ONCE = 4
ASK_SECONDS = 15.0
ALL_SECONDS = 12.0
"""The limit for all classes of a cluster: users wait 20 s for an answer."""


class WorkerClasses:
    """Reads connector classes, and the keys of each, from workers."""

    def __init__(
        self, asking: ClusterRequests, stored_classes: KeptClasses, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._asking = asking
        self._kept = stored_classes
        self._clock = clock
        self._remembered: OrderedDict[tuple[str, str], tuple[float, Json]] = OrderedDict()

    async def of_cluster(self, cluster: WorkerCluster) -> list[Json]:
        """Returns all connector classes of a cluster; a class without an answer in time gets the common settings of
        all connectors.

        Raises the errors of `Asking.ask`, and Internal for an answer that is not JSON.
        """
        listed = await self.ask(cluster.name, "GET", "/connector-plugins")
        limit = asyncio.Semaphore(AT_ONCE)

        async def info(plugin: Any, deadline: float) -> Json:
            kind, name, version = plugin["type"], plugin["class"], plugin.get("version") or ""
            try:
                async with asyncio.timeout_at(deadline), limit:
                    return await self._class(cluster, kind, name, version)
            except (KeelmanError, TimeoutError) as error:
                log.warning("connector_class_not_told", worker_cluster=cluster.name, plugin=name, error=str(error))
                return generic_class(kind, name, version, ohara=is_ohara_class(name))

        classes = {entry["class"]: entry for entry in listed if entry.get("type") in ("source", "sink")}
        deadline = asyncio.get_running_loop().time() + ALL_SECONDS
        return await asyncio.gather(*(info(entry, deadline) for entry in classes.values()))

    async def of_class(self, cluster: WorkerCluster, name: str, *, seconds: float) -> Json | None:
        """Returns one class of a cluster; None if the cluster does not have it or no worker answers in time."""
        try:
            async with asyncio.timeout(seconds):
                if (fresh := self._fresh(cluster, name)) is not None:
                    return fresh
                listed = await self.ask(cluster.name, "GET", "/connector-plugins")
                if (entry := named(listed, name)) is not None:
                    return await self._class(cluster, entry["type"], entry["class"], entry.get("version") or "")
        except (KeelmanError, TimeoutError) as error:
            log.info("connector_class_not_told", worker_cluster=cluster.name, plugin=name, error=str(error))
        return None

    async def ask(
        self, cluster: str, method: str, target: str, body: Any = None, *, seconds: float = ASK_SECONDS
    ) -> Any:
        """Returns the JSON of a worker's answer. Raises our error for an unsuccessful or late answer."""
        content = None if body is None else orjson.dumps(body)
        outgoing = Outgoing(method, target.encode(), HEADERS, content, repeatable=True)
        late = DeadlineExceeded(f"worker cluster {cluster!r} did not answer within {seconds:.0f} s")
        async with deadline(seconds, late):
            answer = await self._asking.ask(cluster, outgoing)
        if answer.status >= 300:
            raise refusal(answer.status, answer.body)
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            raise Internal(f"{method} {target} of worker cluster {cluster!r} answered no JSON") from None

    async def _class(self, cluster: WorkerCluster, kind: str, name: str, version: str) -> Json:
        if (fresh := self._fresh(cluster, name)) is not None:
            return fresh
        keys = await self.ask(cluster.name, "GET", f"/connector-plugins/{quote(name, safe='')}/config")
        info = class_of_keys(kind, name, version, keys)
        self._remembered[cluster.uid, name] = self._clock() + FRESH_SECONDS, info
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        await self._kept.keep(name, version, info)
        return info

    def _fresh(self, cluster: WorkerCluster, name: str) -> Json | None:
        until, info = self._remembered.get((cluster.uid, name), (0.0, None))
        return info if info is not None and self._clock() < until else None


def named(listed: Sequence[Json], name: str) -> Json | None:
    """Returns the connector class with this full or short name, such as FileStreamSource. None for an unknown name, and
    for a short name of several classes."""
    connectors = [entry for entry in listed if entry.get("type") in ("source", "sink")]
    for names_of in (_full_name, _short_names):
        matches = [entry for entry in connectors if name in names_of(entry["class"])]
        if matches:
            return matches[0] if len({entry["class"] for entry in matches}) == 1 else None
    return None


def _full_name(class_name: str) -> tuple[str, ...]:
    return (class_name,)


def _short_names(class_name: str) -> tuple[str, ...]:
    simple = class_name.rpartition(".")[2].rpartition("$")[2]
    return simple, simple.removesuffix("Connector")
