"""Passes the name of the caller whose request causes a write from the gateway to the state service, as metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote, unquote

from keelman.rpc.handlers import Interceptor, Wraps, answers_of, wrapped

ACTOR = "keelman-actor"
"""The key in a call's metadata. A gateway drops it from the calls of its clients."""
MAX_CHARACTERS = 256
_actor: ContextVar[str] = ContextVar("actor", default="")


def act_for(name: str) -> None:
    """Makes a caller the actor of the present call, and of the calls that it causes; "" for none."""
    _actor.set(name[:MAX_CHARACTERS])


def actor() -> str:
    """Returns the caller for whom the present call is; empty if the system itself acts."""
    return _actor.get()


def actor_metadata() -> tuple[tuple[str, str], ...]:
    """Returns the metadata for a call to the state service."""
    return ((ACTOR, quote(name)),) if (name := _actor.get()) else ()


class Actors(Interceptor):
    """Takes the actor of each call from its metadata: of the state service, which trusts its gateways."""

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Wraps the handler of a call."""
        handler = await continuation(details)
        if handler is None:
            return None
        name = next((str(value) for key, value in details.invocation_metadata or () if key == ACTOR), "")
        if not name:
            return handler

        def unary(inner: Any) -> Any:
            async def call(request: Any, context: Any) -> Any:
                act_for(unquote(name))
                return await inner(request, context)

            return call

        def stream(inner: Any) -> Any:
            async def call(request: Any, context: Any) -> AsyncIterator[Any]:
                act_for(unquote(name))
                async for answer in answers_of(inner(request, context)):
                    yield answer

            return call

        return wrapped(handler, Wraps(unary, stream, upload=unary, both=stream))
