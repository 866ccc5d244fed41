"""Calls the state service by the type of a request: the caller names neither service nor method."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from google.protobuf.message import Message

from keelman.api.connect.v1 import dedicated_connector_service_pb2 as dedicated
from keelman.model.connectors.dedicated_connector import SCALING_SECONDS
from keelman.rpc.actors import actor_metadata
from keelman.rpc.channels import Channel
from keelman.rpc.errors import translated_stream
from keelman.rpc.generated import method_of, stream_of

PAGE = 1000
SECONDS = 10.0
"""The deadline of one call."""
LONGER: Mapping[type[Message], float] = dict.fromkeys(
    (
        dedicated.UpdateDedicatedConnectorRequest, dedicated.PauseDedicatedConnectorRequest,
        dedicated.ResumeDedicatedConnectorRequest, dedicated.RestartDedicatedConnectorRequest,
    ),
    SECONDS + SCALING_SECONDS,
)  # fmt: skip
"""Deadlines of requests that the state service answers once a step of autoscaling has ended."""


class Calls:
    """Calls on the gateway's channel to the state service. They raise the errors of keelman.model.errors."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._methods: dict[type[Message], Any] = {}

    async def ask(self, request: Message) -> Any:
        """Sends a request with a deadline; returns its answer."""
        kind = type(request)
        if kind not in self._methods:
            self._methods[kind] = method_of(self._channel, kind)
        return await self._methods[kind](request, metadata=actor_metadata(), timeout=LONGER.get(kind, SECONDS))

    async def pages(self, request_type: Any, **fields: Any) -> AsyncIterator[Any]:
        """Yields all items of a list, page by page; `fields` are fields of each request."""
        token = ""
        while True:
            answer = await self.ask(request_type(page_size=PAGE, page_token=token, **fields))
            for item in getattr(answer, answer.DESCRIPTOR.fields_by_number[1].name):
                yield item
            token = answer.next_page_token
            if not token:
                return

    async def stream(self, request: Message) -> AsyncGenerator[Any, None]:
        """Yields the answers of a streaming call, without a deadline."""
        call = stream_of(self._channel, type(request))(request)
        try:
            async for answer in translated_stream(call):
                yield answer
        finally:
            call.cancel()

    async def all(self, request_type: Any, **fields: Any) -> list[Any]:
        """Returns all items of a list."""
        return [item async for item in self.pages(request_type, **fields)]
