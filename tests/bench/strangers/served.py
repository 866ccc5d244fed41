"""Callers with a token, as a process of its own: `python -m bench.strangers.served paced|most GRPC_PORT HTTP_PORT TOKEN
SECONDS`.

Prints as JSON the milliseconds of each call (`paced`: a caller begins its calls at fixed times, from which they count),
or the calls of gRPC in a second (`most`: callers that call again at once).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Protocol

from bench.strangers import frames
from bench.strangers.flood import METHOD

CALLERS = 2
"""The callers of gRPC, and as many of HTTP."""
EVERY_SECONDS = 0.04
AT_ONCE = 8
FAILED = 60_000.0
"""The milliseconds that a call counts that was not served."""
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class NotServed(Exception):
    """A served caller got another answer than success."""


class Caller(Protocol):
    """A caller with a connection of its own."""

    async def call(self) -> None:
        """Makes one call. Raises NotServed."""


class GrpcCaller:
    """Lists nodes by gRPC."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader, self._writer = reader, writer
        self._frames = frames.Reader()
        self._block = frames.head_of_call(METHOD, token)
        self._stream = -1
        writer.write(frames.PREFACE)

    async def call(self) -> None:
        """One call."""
        self._stream += 2
        self._writer.write(frames.call(self._block, self._stream, b""))
        while True:
            data = await self._reader.read(1 << 16)
            if not data:
                raise ConnectionError("the gateway has closed the connection of a served caller")
            for received in self._frames.feed(data):
                if answer := frames.answer_to(received):
                    self._writer.write(answer)
                elif received.stream == self._stream and (received.ends_call or received.kind == frames.RESET):
                    if b"grpc-status\x010" not in received.payload:
                        raise NotServed(received)
                    return


class HttpCaller:
    """Lists nodes by Ohara's REST API."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader, self._writer = reader, writer
        self._request = f"GET /v0/nodes HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {token}\r\n\r\n".encode()

    async def call(self) -> None:
        """One call."""
        self._writer.write(self._request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        if not head.startswith(b"HTTP/1.1 200") or length is None:
            raise NotServed(head)
        await self._reader.readexactly(int(length[1]))


async def paced(caller: Caller, first: float, until: float) -> list[float]:
    """The milliseconds of each call, from the time at which it was due; FAILED for one that was not served."""
    took: list[float] = []
    due = first
    while due < until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        try:
            await caller.call()
            took.append(1000 * (time.monotonic() - due))
        except NotServed:
            took.append(FAILED)
        due += EVERY_SECONDS
    return took


async def repeated(caller: Caller, until: float) -> int:
    """The number of calls, each made when the one before is answered."""
    number = 0
    while time.monotonic() < until:
        await caller.call()
        number += 1
    return number


async def connected(make: Callable[..., Caller], port: int, token: str) -> Caller:
    """A caller that has made its first calls."""
    caller = make(*await asyncio.open_connection("127.0.0.1", port), token)
    for _ in range(5):
        with contextlib.suppress(NotServed):
            await caller.call()
    return caller


async def main(how: str, grpc_port: int, http_port: int, token: str, seconds: float) -> object:
    """What is printed."""
    if how == "most":
        callers = [await connected(GrpcCaller, grpc_port, token) for _ in range(AT_ONCE)]
        begun = time.monotonic()
        numbers = await asyncio.gather(*(repeated(caller, begun + seconds) for caller in callers))
        return sum(numbers) / (time.monotonic() - begun)
    of_grpc = [await connected(GrpcCaller, grpc_port, token) for _ in range(CALLERS)]
    of_http = [await connected(HttpCaller, http_port, token) for _ in range(CALLERS)]
    begun, all_callers = time.monotonic(), [*of_grpc, *of_http]
    shift = EVERY_SECONDS / len(all_callers)
    calls: list[Awaitable[list[float]]] = [
        paced(caller, begun + number * shift, begun + seconds) for number, caller in enumerate(all_callers)
    ]
    took = await asyncio.gather(*calls)
    return {"grpc": list(chain(*took[:CALLERS])), "http": list(chain(*took[CALLERS:]))}


if __name__ == "__main__":
    way, *ports, secret, lasting = sys.argv[1:]
    print(json.dumps(asyncio.run(main(way, *map(int, ports), secret, float(lasting)))))
