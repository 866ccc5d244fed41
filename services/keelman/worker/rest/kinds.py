"""Where REST differs between the ways to start a worker."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from keelman.worker.errors import RestError
from keelman.worker.rest.context import Handler

# As Connect's standalone worker answers (tests/recorded/standalone.json).
NO_TASKS = "Kafka Connect in standalone mode does not support externally setting task configurations."
NO_FENCE = "Kafka Connect in standalone mode does not support exactly-once source connectors."


def refusing(message: str) -> Handler:
    """A handler that answers with 500 and this message, whatever is asked."""

    async def refuse(request: Request) -> Response:
        raise RestError(500, message)

    return refuse


def as_put(put: Handler) -> Handler:
    """A handler for POST that does what PUT does, also for the leader that it may be passed on to."""

    async def handle(request: Request) -> Response:
        request.scope["method"] = "PUT"
        return await put(request)

    return handle
