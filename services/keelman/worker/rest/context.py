"""Gives REST's handlers the parts that they use, and reads requests for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from keelman.worker.errors import not_found
from keelman.worker.group.herder import Herder
from keelman.worker.previews.databases import Databases
from keelman.worker.previews.previews import Previews
from keelman.worker.previews.replays import Replays
from keelman.worker.rest.answers import STATUS_TEXTS
from keelman.worker.rest.forwarding.forwarding import Forwarder
from keelman.worker.rest.offset_changes import OffsetChanges
from keelman.worker.rest.operations import Operations
from keelman.worker.rest.views import Views
from keelman.worker.storage.store import WorkerStore
from keelman.worker.storage.topic_tracking import TopicTracking

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
NAME_SAFE = "!$&'()*+,=:@"
MAX_TASK = 1 << 31


@dataclass(frozen=True, slots=True)
class RestContext:
    """One worker's, from the moment it has its topics."""

    herder: Herder
    store: WorkerStore
    views: Views
    operations: Operations
    offsets: OffsetChanges
    tracking: TopicTracking
    forwarder: Forwarder
    previews: Previews
    replays: Replays
    databases: Databases
    cluster_id: str
    why_away: Callable[[], str]


def name_in(request: Request) -> str:
    """Returns the connector in the path."""
    return str(request.path_params["name"])


def task_in(request: Request) -> int:
    """Returns the task's number in the path, as Java reads it. Raises 404 for other texts than a number of 32 bits."""
    text = str(request.path_params["task"])
    digits = text[1:] if text[:1] in "+-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or not -MAX_TASK <= int(text) < MAX_TASK:
        raise not_found(STATUS_TEXTS[404])
    return int(text)


def flag_in(request: Request, key: str, *, default: bool = False) -> bool:
    """Returns a yes or no of the query: the first one counts, anything but true is no, and a blank one counts as
    absent."""
    text = (request.query_params.getlist(key) or [""])[0]
    return text.lower() == "true" if text.strip() else default


def location(request: Request, name: str) -> str:
    """Returns the URL of a connector, for the sender of this request."""
    return f"{request.base_url}connectors/{quote(name, safe=NAME_SAFE)}"


async def void(work: Awaitable[object], status: int) -> Response:
    """Returns an empty answer, once the work is done."""
    await work
    return Response(status_code=status)
