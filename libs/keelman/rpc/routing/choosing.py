"""A channel that hands each call to another channel, chosen for that call."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import grpc
from grpc import ChannelConnectivity


class ChoosingChannel(grpc.aio.Channel):
    """Base of channels in front of other channels: `_chosen` returns the channel of the next call, `_method` the
    function that makes calls."""

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.close()

    @abstractmethod
    def _chosen(self) -> grpc.aio.Channel:
        """Returns the channel of the next call."""

    @abstractmethod
    def _method(self, kind: str, *arguments: Any, **named: Any) -> Callable[..., Any]:
        """Returns the function that calls a method; the arguments are those of grpc's own channels."""

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """Like the method of grpc's channels."""
        return self._method("unary_unary", *arguments, **named)

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        """Like the method of grpc's channels."""
        return self._method("unary_stream", *arguments, **named)

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        """Like the method of grpc's channels."""
        return self._method("stream_unary", *arguments, **named)

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        """Like the method of grpc's channels."""
        return self._method("stream_stream", *arguments, **named)

    def get_state(self, try_to_connect: bool = False) -> ChannelConnectivity:
        """Returns the state of the channel of the next call."""
        return self._chosen().get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: ChannelConnectivity) -> None:
        """Waits for another state of the channel of the next call."""
        await self._chosen().wait_for_state_change(last_observed_state)
