"""Reads and changes the connectors of running worker clusters through the workers' Connect REST API."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from keelman.api.connect.v1 import connector_pb2 as pb
from keelman.model import errors
from keelman.runtime.supervise import supervise
from keelman.workers.connector_messages import TYPES, add_notes
from keelman.workers.rest.asking import ClusterRequests
from keelman.workers.rest.client import Outgoing
from keelman.workers.rest.problem_keys import PROBLEMS, header_list, with_keys
from keelman.workers.status_notes import STATUS_FIELD

PRECONDITION_FAILED = 412
NOTES = "keelman-notes"
"""Header of a worker's answers about configurations (keelman.worker.rest.key_notes)."""
UID, REQUEST_ID = "keelman-uid", b"keelman-request-id"
"""Headers of an answer about a connector (keelman.worker.rest.views), and of a request that changes one (repeats)."""
HEADERS = ((b"content-type", b"application/json"), (b"accept", b"application/json"), (NOTES.encode(), b"wanted"))


@dataclass(frozen=True, slots=True)
class ListedConnectors:
    """All connectors that could be listed, and why the others' worker clusters could not."""

    connectors: list[pb.Connector]
    unreachable: dict[str, str]


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """A worker's answer: its JSON, and what its headers tell about the connector."""

    body: Any
    notes: Sequence[Any]
    etag: str
    uid: str


@dataclass(slots=True)
class RestConnectors:
    """Reads and changes connectors. Errors of a worker come as our classes with Connect's own message.

    Raises NotFound (worker cluster, connector), InvalidArgument (a configuration that Connect refuses), AlreadyExists,
    Conflict (a rebalance is under way: try again), Unauthenticated (workers do not know the service's user),
    Unavailable (no worker can be reached), DeadlineExceeded, Internal.
    """

    asking: ClusterRequests
    _: KW_ONLY
    list_seconds: float = 10.0
    on_write: Callable[[str, str, pb.Connector | None], None] = lambda cluster, name, connector: None
    """Called with each connector that was created, changed or, with None, deleted."""

    async def get(self, cluster: str, name: str) -> pb.Connector:
        """Returns one connector with its present state."""
        answer = await self._ask(cluster, "GET", _path(name))
        return await self._complete(cluster, name, answer)

    async def all(self, clusters: Iterable[str]) -> ListedConnectors:
        """Returns the connectors of these worker clusters, which are read concurrently."""
        listing = ListedConnectors([], {})
        await supervise(*(partial(self._list, cluster, listing) for cluster in clusters))
        return listing

    async def create(
        self, cluster: str, name: str, config: Mapping[str, str], *, request_id: str = "", initial_state: str = ""
    ) -> pb.Connector:
        """Creates a connector, or returns the connector that an earlier request of this id created, as it is now. It
        runs, unless `initial_state` is PAUSED or STOPPED."""
        body: dict[str, Any] = {"name": name, "config": dict(config)}
        if initial_state:
            body["initial_state"] = initial_state
        with _conflict_means_existing():
            answer = await self._ask(cluster, "POST", "/connectors", body, request_id=request_id or uuid.uuid4().hex)
        return await self._written(cluster, name, answer)

    async def update(
        self, cluster: str, name: str, config: Mapping[str, str], *, etag: str = "", request_id: str = ""
    ) -> pb.Connector:
        """Replaces the configuration of an existing connector (Connect's own PUT would create it). Raises Conflict if
        the present configuration does not have a given `etag`; a request whose id was done earlier is not done again.
        The same holds for all methods below."""
        await self._call(cluster, "GET", _path(name))
        path = _path(name, "/config")
        answer = await self._ask(cluster, "PUT", path, dict(config), etag=etag, request_id=request_id)
        return await self._written(cluster, name, answer)

    async def patch(
        self, cluster: str, name: str, patch: Mapping[str, str | None], *, etag: str = "", request_id: str = ""
    ) -> pb.Connector:
        """Changes some keys of a configuration; a key with the value None is removed."""
        path = _path(name, "/config")
        answer = await self._ask(cluster, "PATCH", path, dict(patch), etag=etag, request_id=request_id)
        return await self._written(cluster, name, answer)

    async def delete(self, cluster: str, name: str, *, etag: str = "", request_id: str = "") -> None:
        """Deletes a connector."""
        await self._ask(cluster, "DELETE", _path(name), etag=etag, request_id=request_id)
        self.on_write(cluster, name, None)

    async def pause(self, cluster: str, name: str, *, etag: str = "", request_id: str = "") -> None:
        """Pauses a connector and its tasks."""
        await self._ask(cluster, "PUT", _path(name, "/pause"), etag=etag, request_id=request_id)

    async def resume(self, cluster: str, name: str, *, etag: str = "", request_id: str = "") -> None:
        """Resumes a paused or stopped connector."""
        await self._ask(cluster, "PUT", _path(name, "/resume"), etag=etag, request_id=request_id)

    async def stop(self, cluster: str, name: str, *, etag: str = "", request_id: str = "") -> None:
        """Stops a connector and ends its tasks."""
        await self._ask(cluster, "PUT", _path(name, "/stop"), etag=etag, request_id=request_id)

    async def restart(
        self, cluster: str, name: str, *, include_tasks: bool, only_failed: bool, etag: str = "", request_id: str = ""
    ) -> None:
        """Restarts a connector, its tasks too, or only failed parts."""
        options = {"includeTasks": include_tasks, "onlyFailed": only_failed}
        query = urlencode({k: "true" for k, v in options.items() if v})
        path = _path(name, "/restart") + (f"?{query}" if query else "")
        await self._ask(cluster, "POST", path, etag=etag, request_id=request_id)

    async def _list(self, cluster: str, listing: ListedConnectors) -> None:
        try:
            async with asyncio.timeout(self.list_seconds):
                answer = await self._call(cluster, "GET", "/connectors?expand=status&expand=info")
        except errors.KeelmanError as error:
            listing.unreachable[cluster] = error.message
        except TimeoutError:
            listing.unreachable[cluster] = f"no answer within {self.list_seconds:g} s"
        else:
            listing.connectors.extend(
                _connector(cluster, c["info"], c.get("status")) for c in answer.values() if "info" in c
            )

    async def _status(self, cluster: str, name: str) -> Any:
        """Returns the status; None while no worker has written one yet."""
        try:
            return await self._call(cluster, "GET", _path(name, "/status"))
        except errors.NotFound:
            return None

    async def _call(self, cluster: str, method: str, target: str, body: Any = None) -> Any:
        return (await self._ask(cluster, method, target, body)).body

    async def _written(self, cluster: str, name: str, answer: RestAnswer) -> pb.Connector:
        connector = await self._complete(cluster, name, answer)
        self.on_write(cluster, name, connector)
        return connector

    async def _complete(self, cluster: str, name: str, answer: RestAnswer) -> pb.Connector:
        """Returns the connector of an answer, with its present state."""
        connector = _connector(cluster, answer.body, await self._status(cluster, name))
        connector.notes.extend(map(str, answer.notes))
        connector.etag, connector.uid = answer.etag, answer.uid
        return connector

    async def _ask(
        self, cluster: str, method: str, target: str, body: Any = None, *, etag: str = "", request_id: str = ""
    ) -> RestAnswer:
        content = None if body is None else orjson.dumps(body)
        more = ((b"if-match", etag), (REQUEST_ID, request_id))
        headers = (*HEADERS, *((name, text.encode("latin-1", "replace")) for name, text in more if text))
        outgoing = Outgoing(method, target.encode(), headers, content, has_id=bool(request_id))
        received = await self.asking.ask(cluster, outgoing)
        if received.status == PRECONDITION_FAILED:
            raise errors.Conflict(f"etag: {etag!r} is not the present one: read the connector again")
        if received.status >= 300:
            raise refusal(received.status, received.body, header_list(received.headers, PROBLEMS))
        try:
            found = orjson.loads(received.body) if received.body else None
        except orjson.JSONDecodeError:
            raise errors.Internal(f"{method} {target} of worker cluster {cluster!r} answered no JSON") from None
        etag, uid = (received.headers.get(name, "") for name in ("etag", UID))
        return RestAnswer(found, header_list(received.headers, NOTES), etag, uid)


def refusal(status: int, answer: bytes, problems: Sequence[Any] = ()) -> errors.KeelmanError:
    """Returns our error for an answer of Connect's that is not a success, with Connect's message if there is one.
    `problems` are keys and texts of that message that do not name their keys: the keys are added there."""
    try:
        message = str(orjson.loads(answer)["message"] or f"HTTP {status}")
    except (orjson.JSONDecodeError, LookupError, TypeError):
        message = f"HTTP {status}: {answer[:200].decode('utf-8', 'replace')}"
    violations = [errors.Violation(key, text) for key, text in problems]
    message = with_keys(message, problems)
    return errors.class_of_http_status(status)(message, metadata={"http_status": str(status)}, violations=violations)


@contextmanager
def _conflict_means_existing() -> Iterator[None]:
    """Raises AlreadyExists where Connect answers 409 for an existing name. It answers 409 during a rebalance too; only
    the message distinguishes them."""
    try:
        yield
    except errors.Conflict as error:
        if "already exists" in error.message:
            raise errors.AlreadyExists(error.message, metadata=error.metadata) from None
        raise


def _path(name: str, rest: str = "") -> str:
    return f"/connectors/{quote(name, safe='')}{rest}"


def _connector(cluster: str, info: Any, status: Any) -> pb.Connector:
    """Returns a connector from Connect's ConnectorInfo and ConnectorStateInfo; without the latter nothing runs yet:
    UNASSIGNED."""
    own = (status or {}).get("connector") or {}
    tasks = list((status or {}).get("tasks") or ())
    numbers = {int(t["id"]) for t in tasks}
    tasks += [{"id": t["task"]} for t in info.get("tasks") or () if int(t["task"]) not in numbers]
    return pb.Connector(
        worker_cluster=cluster,
        name=info["name"],
        type=TYPES.get(info.get("type") or "", pb.CONNECTOR_TYPE_UNKNOWN),
        config={k: v for k, v in (info.get("config") or {}).items() if v is not None},
        state=_state(own),
        worker_id=own.get("worker_id") or "",
        trace=own.get("trace") or "",
        tasks=[_task(t) for t in sorted(tasks, key=lambda t: int(t["id"]))],
    )


def _task(status: Mapping[str, Any]) -> pb.ConnectorTask:
    task = pb.ConnectorTask(
        task=status["id"],
        state=_state(status),
        worker_id=status.get("worker_id") or "",
        trace=status.get("trace") or "",
    )
    return add_notes(task, status.get(STATUS_FIELD) or {})


def _state(status: Mapping[str, Any]) -> pb.ConnectorState.ValueType:
    """Returns the state; UNASSIGNED before any worker has written a status."""
    name = status.get("state")
    if not name:
        return pb.CONNECTOR_STATE_UNASSIGNED
    return dict(pb.ConnectorState.items()).get(f"CONNECTOR_STATE_{name}", pb.CONNECTOR_STATE_UNSPECIFIED)
