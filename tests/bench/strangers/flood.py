"""Strangers, as a process of its own: `python -m bench.strangers.flood GRPC_PORT HTTP_PORT RATE SECONDS CONNECTIONS`.

They send at the rate whether they are answered or not, over so many connections of each kind, which they open again
when the gateway closes them; of gRPC more at once than the gateway takes on a connection. What they sent and what
became of it is printed as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from bench.strangers import frames

TICK_SECONDS = 0.005
SILENT_A_SECOND, SILENT_AT_ONCE = 20, 300
"""Connections that send nothing: new ones in a second, and open ones."""
HELD_BYTES = 64 << 10
"""A connection that has more of its requests unsent takes no further ones."""
PAUSE_SECONDS = 0.01
"""Before a connection that the gateway has closed is opened again."""
LAST_SECONDS = 2.0
METHOD = "/keelman.api.node.v1.NodeService/ListNodes"
CREDENTIAL = "Credential=STRANGER/{day}/us-east-1/kafkaconnect/aws4_request"
STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d)")
STATUS_BYTES = 12
GRPC_STATUS = re.compile(rb"grpc-status[\x01\x02](\d+)")
UNAUTHENTICATED = ("7", "16")
REFUSED = (b"401", b"403", b"429", b"503")


class Line(asyncio.Protocol):
    """One connection of a kind of stranger; `counts` are the kind's."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts
        self.transport: asyncio.Transport | None = None
        self.unanswered = 0
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts it."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.counts["connections"] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """What was not answered never will be."""
        self.counts["given_up"] += self.unanswered
        self.unanswered = 0
        self.closed.set()

    def send(self, number: int) -> int:
        """Sends so many requests, or none; returns how many."""
        if self.transport is None or self.transport.is_closing():
            return 0
        if self.transport.get_write_buffer_size() > HELD_BYTES:
            return 0
        self.transport.write(self.requests(number))
        self.counts["sent"] += number
        self.unanswered += number
        return number

    def answered(self, how: str) -> None:
        """Counts an answer."""
        self.counts[how] += 1
        self.unanswered -= 1

    def requests(self, number: int) -> bytes:
        """The bytes of so many requests."""
        raise NotImplementedError


class HttpLine(Line):
    """Sends requests of HTTP/1.1 one behind the other, without waiting for answers."""

    def __init__(self, counts: Counter[str], request: bytes) -> None:
        super().__init__(counts)
        self._request = request
        self._rest = b""

    def requests(self, number: int) -> bytes:
        """See above."""
        return self._request * number

    def data_received(self, data: bytes) -> None:
        """Counts the answers by status."""
        data = self._rest + data
        for status in STATUS.findall(data):
            self.answered("refused" if status in REFUSED else f"http {status.decode()}")
        self._rest = data[-(STATUS_BYTES - 1) :]


class GrpcLine(Line):
    """Makes calls of gRPC, more at once than the server takes on a connection."""

    def __init__(self, counts: Counter[str], block: bytes) -> None:
        super().__init__(counts)
        self._block = block
        self._reader = frames.Reader()
        self._next = 1
        self._ended = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to speak HTTP/2."""
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.write(frames.PREFACE)

    def requests(self, number: int) -> bytes:
        """See above."""
        first, self._next = self._next, self._next + 2 * number
        return b"".join(frames.call(self._block, stream, None) for stream in range(first, self._next, 2))

    def data_received(self, data: bytes) -> None:
        """Counts the answers by what ends their calls."""
        assert self.transport is not None
        for received in self._reader.feed(data):
            if received.ends_call:
                self._ended = received.stream
                status = GRPC_STATUS.search(received.payload)
                code = "none" if status is None else status[1].decode()
                self.answered("refused" if code in UNAUTHENTICATED else f"grpc status {code}")
            elif received.kind == frames.RESET and received.stream != self._ended:  # else it has been counted
                self.answered("turned_away")
            elif received.kind == frames.GOAWAY:
                self.transport.close()
                return
            elif answer := frames.answer_to(received):
                self.transport.write(answer)


class Silent(Line):
    """A connection that sends nothing."""


class Kind:
    """One kind of strangers: their connections, and what became of their requests."""

    def __init__(self, name: str, port: int, make: Callable[[Counter[str]], Line]) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        self._port = port
        self._make = make
        self._lines: list[Line] = []
        self._turn = 0

    async def keep(self) -> None:
        """Keeps one connection open until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(OSError):
                line = self._make(self.counts)
                transport, _ = await loop.create_connection(lambda line=line: line, "127.0.0.1", self._port)
                self._lines.append(line)
                try:
                    await line.closed.wait()
                finally:
                    self._lines.remove(line)
                    transport.abort()
            await asyncio.sleep(PAUSE_SECONDS)

    def result(self) -> dict[str, int]:
        """What became of the requests so far."""
        return {**self.counts, "unanswered": sum(line.unanswered for line in self._lines)}

    def send(self, number: int) -> None:
        """Sends so many requests over its connections in turn; what none of them takes is held back."""
        lines = self._lines if number else []
        for _ in range(len(lines)):
            self._turn = (self._turn + 1) % len(lines)
            number -= lines[self._turn].send(number)
            if not number:
                return
        self.counts["held_back"] += number


def kinds(grpc_port: int, http_port: int) -> list[Kind]:
    """All kinds of strangers that send."""
    now = datetime.now(UTC)
    credential = CREDENTIAL.format(day=f"{now:%Y%m%d}")
    signed = f"AWS4-HMAC-SHA256 {credential},SignedHeaders=host;x-amz-date,Signature={'0' * 64}"
    dated = f"\r\nX-Amz-Date: {now:%Y%m%dT%H%M%SZ}"

    def http(path: str, authorization: str = "", more: str = "") -> Callable[[Counter[str]], Line]:
        header = f"\r\nAuthorization: {authorization}" if authorization else ""
        request = f"GET {path} HTTP/1.1\r\nHost: gateway{header}{more}\r\n\r\n".encode()
        return lambda counts: HttpLine(counts, request)

    def grpc(token: str | None) -> Callable[[Counter[str]], Line]:
        block = frames.head_of_call(METHOD, token)
        return lambda counts: GrpcLine(counts, block)

    return [
        Kind("grpc, no token", grpc_port, grpc(None)),
        Kind("grpc, wrong token", grpc_port, grpc("of-a-stranger")),
        Kind("http, no token", http_port, http("/v0/nodes")),
        Kind("http, wrong token", http_port, http("/v0/nodes", "Bearer of-a-stranger")),
        Kind("http, unknown key", http_port, http("/v1/connectors", signed, dated)),
    ]


async def flood(grpc_port: int, http_port: int, rate: float, seconds: float, lines: int) -> dict[str, dict[str, int]]:
    """What became of the requests, by kind of stranger."""
    senders = kinds(grpc_port, http_port)
    silent = Kind("http, silent", http_port, Silent)
    keeping = [asyncio.create_task(kind.keep()) for kind in senders for _ in range(lines)]
    sent = 0
    try:
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds:
            while len(keeping) - lines * len(senders) < min(SILENT_AT_ONCE, passed * SILENT_A_SECOND):
                keeping.append(asyncio.create_task(silent.keep()))
            owed = int(passed * rate / len(senders)) - sent
            sent += owed
            for kind in senders:
                kind.send(owed)
            await asyncio.sleep(TICK_SECONDS)
        await asyncio.sleep(LAST_SECONDS)
        result = {kind.name: kind.result() for kind in (*senders, silent)}
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
    return result


if __name__ == "__main__":
    ports, (wanted, lasting) = map(int, sys.argv[1:3]), map(float, sys.argv[3:5])
    print(json.dumps(asyncio.run(flood(*ports, wanted, lasting, int(sys.argv[5])))))
