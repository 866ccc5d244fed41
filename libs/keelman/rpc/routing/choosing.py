"""A channel that hands each call to another channel, chosen for that call."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import grpc
from grpc import ChannelConnectivity


class ChoosingChannel(grpc.aio.Channel):
    """Base of those that stand before others: `_chosen` says which one is next, `_method` makes what calls on it."""

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.close()

    @abstractmethod
    def _chosen(self) -> grpc.aio.Channel:
        """The one that the next call goes to."""

    @abstractmethod
    def _method(self, kind: str, *given: Any, **named: Any) -> Callable[..., Any]:
        """What makes calls of a method, by the name and the arguments by which grpc's channels give one."""

    def unary_unary(self, *given: Any, **named: Any) -> Any:
        """As grpc's channels have it."""
        return self._method("unary_unary", *given, **named)

    def unary_stream(self, *given: Any, **named: Any) -> Any:
        """As grpc's channels have it."""
        return self._method("unary_stream", *given, **named)

    def stream_unary(self, *given: Any, **named: Any) -> Any:
        """As grpc's channels have it."""
        return self._method("stream_unary", *given, **named)

    def stream_stream(self, *given: Any, **named: Any) -> Any:
        """As grpc's channels have it."""
        return self._method("stream_stream", *given, **named)

    def get_state(self, try_to_connect: bool = False) -> ChannelConnectivity:
        """Of the one that the next call goes to."""
        return self._chosen().get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: ChannelConnectivity) -> None:
        """Of the one that the next call goes to."""
        await self._chosen().wait_for_state_change(last_observed_state)
