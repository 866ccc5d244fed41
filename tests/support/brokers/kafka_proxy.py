"""Watches, holds, drops or cuts chosen requests on their way to a Kafka broker, or loses their answers.

Clients reach the broker through it when the broker advertises the proxy's address (`broker --advertised`). It reads the
size, the request header and, if it is the first field of the request, the transactional id; it changes nothing. Framing
and headers: https://kafka.apache.org/protocol#protocol_messages (RequestOrResponse, Request Header v1 and v2).

A request is held on its own connection and stays there when the client has given up and closed it. This reproduces
KAFKA-17754: an EndTxn that the client repeated on another connection reaches the broker during the next transaction.

```python
async with KafkaProxy("127.0.0.1", port) as proxy:
    held = proxy.catch(END_TXN, transactional_id="wc-in-0")
    request = await held.seen()
    ...
    held.release()
    answer = await held.answered()
```
"""

from __future__ import annotations

import asyncio
import enum
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from support.proxy import Ends, Proxy, Tunnel

PRODUCE = 0
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28

# The first flexible version of each request (header v2, compact strings), for requests whose first field is the
# transactional id; AddPartitionsToTxn has it first up to version 3.
# https://github.com/apache/kafka/tree/4.3/clients/src/main/resources/common/message
FLEXIBLE_FROM = {
    PRODUCE: 9,
    INIT_PRODUCER_ID: 2,
    ADD_PARTITIONS_TO_TXN: 3,
    ADD_OFFSETS_TO_TXN: 3,
    END_TXN: 3,
    TXN_OFFSET_COMMIT: 3,
}
LONGEST_FRAME = 1 << 30


class Fate(enum.Enum):
    """The ways to treat a caught request."""

    WATCH = "passed on as any other"
    HOLD = "kept until released, with all that comes behind it on its connection"
    DROP = "never passed on; the client waits"
    CUT = "its connection is closed in its place"
    RESET = "its connection is reset in its place"
    LOSE_ANSWER = "passed on; its connection is closed in place of the answer"


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """A request as far as the proxy has read it.

    `transactional_id` is empty if there is none or it is not the first field.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    transactional_id: str
    frame: bytes = field(repr=False)


@dataclass(eq=False)
class Catch:
    """One request to catch, the n-th that matches, and its outcome."""

    api_key: int
    fate: Fate
    transactional_id: str
    client_id: str
    left: int
    request: ProxiedRequest | None = None
    answer: bytes | None = None
    _seen: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the request has found its end: answered, or never to be."""

    def fits(self, request: ProxiedRequest) -> bool:
        """True for the request to catch; counts the requests that match."""
        if self.left == 0 or request.api_key != self.api_key:
            return False
        if self.transactional_id not in ("", request.transactional_id):
            return False
        if not request.client_id.startswith(self.client_id):
            return False
        self.left -= 1
        return self.left == 0

    async def seen(self, seconds: float = 300.0) -> ProxiedRequest:
        """The request, once it has come. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            await self._seen.wait()
        assert self.request is not None
        return self.request

    def release(self) -> None:
        """Forwards a held request."""
        self.released.set()

    async def answered(self, seconds: float = 300.0) -> bytes:
        """The broker's answer after its correlation id, whether or not a client was still there.

        Raises TimeoutError; ConnectionError when the broker closed the connection instead.
        """
        async with asyncio.timeout(seconds):
            await self.over.wait()
        if self.answer is None:
            raise ConnectionError("the broker gave no answer")
        return self.answer

    def note_seen(self, request: ProxiedRequest) -> None:
        """Records that the request has come."""
        self.request = request
        self._seen.set()

    def note_answer(self, answer: bytes | None) -> None:
        """Records the answer; None if it will never come."""
        self.answer = answer
        self.over.set()


class KafkaTunnel(Tunnel):
    """One connection of a Kafka client."""

    def __init__(self, proxy: KafkaProxy, client: Ends, server: Ends) -> None:
        super().__init__(proxy, client, server)
        self._caught: dict[int, Catch] = {}
        self._kafka = proxy

    async def requests(self) -> AsyncIterator[bytes]:
        """Whole requests, except those with another fate."""
        try:
            while True:
                request = parsed(await _frame(self.client_in))
                self.client_id = request.client_id
                caught = self._kafka.match(request)
                if caught is None or await self._goes_on(caught, request):
                    yield request.frame
        except (OSError, EOFError):
            pass
        for caught in tuple(self._caught.values()):
            await caught.over.wait()

    async def _goes_on(self, caught: Catch, request: ProxiedRequest) -> bool:
        self._caught[request.correlation_id] = caught
        caught.note_seen(request)
        match caught.fate:
            case Fate.HOLD:
                await caught.released.wait()
            case Fate.LOSE_ANSWER | Fate.WATCH:
                pass
            case other:
                self._caught.pop(request.correlation_id).note_answer(None)
                if other is not Fate.DROP:
                    (self.cut if other is Fate.CUT else self.reset)()
                return False
        return True

    async def answers(self) -> AsyncIterator[bytes]:
        """Whole answers, except the one to lose."""
        try:
            while True:
                frame = await _frame(self.server_in)
                (correlation,) = struct.unpack_from(">i", frame, 4)
                caught = self._caught.pop(correlation, None)
                if caught is not None:
                    caught.note_answer(frame[8:])
                    if caught.fate is Fate.LOSE_ANSWER:
                        self.cut()
                        return
                yield frame
        except (OSError, EOFError):
            pass
        finally:
            for caught in self._caught.values():
                caught.note_answer(None)


class KafkaProxy(Proxy):
    """The proxy before one broker."""

    def __init__(self, host: str, port: int) -> None:
        """`host` and `port` as in `Proxy`."""
        super().__init__(host, port, tunnel=KafkaTunnel)
        self._catches: list[Catch] = []
        self.counts: dict[int, int] = {}
        """How many requests of each api key were seen."""

    async def __aenter__(self) -> KafkaProxy:
        await super().__aenter__()
        return self

    def catch(
        self, api_key: int, fate: Fate = Fate.HOLD, *, transactional_id: str = "", client_id: str = "", nth: int = 1
    ) -> Catch:
        """Catches the n-th matching request from now on; `client_id` is a prefix."""
        result = Catch(api_key, fate, transactional_id, client_id, nth)
        self._catches.append(result)
        return result

    def match(self, request: ProxiedRequest) -> Catch | None:
        """The catch that applies to this request, or None."""
        self.counts[request.api_key] = self.counts.get(request.api_key, 0) + 1
        for caught in self._catches:
            if caught.fits(request):
                self._catches.remove(caught)
                return caught
        return None

    def forget(self) -> None:
        """Catches nothing more; a held request is forwarded when its catch is released."""
        self._catches.clear()


def of_client(prefix: str) -> Callable[[Tunnel], bool]:
    """Chooses connections whose client id has this prefix, for `affects`, `cut` and `reset`."""
    return lambda tunnel: tunnel.client_id.startswith(prefix)


def parsed(frame: bytes) -> ProxiedRequest:
    """Reads a request's header. Raises ValueError or struct.error when that is no Kafka request."""
    api_key, version, correlation, length = struct.unpack_from(">hhih", frame, 4)
    at = 14
    client_id = frame[at : at + max(0, length)].decode()
    at += max(0, length)
    first_flexible = FLEXIBLE_FROM.get(api_key)
    if (
        first_flexible is None
        or (api_key == ADD_PARTITIONS_TO_TXN and version > 3)
        or (api_key == PRODUCE and version < 3)
    ):
        return ProxiedRequest(api_key, version, correlation, client_id, "", frame)
    if version < first_flexible:
        (length,) = struct.unpack_from(">h", frame, at)
        at += 2
    else:
        tags, at = _varint(frame, at)
        for _ in range(tags):
            _, at = _varint(frame, at)
            size, at = _varint(frame, at)
            at += size
        length, at = _varint(frame, at)
        length -= 1  # compact strings begin with their length plus one, 0 for null
    return ProxiedRequest(api_key, version, correlation, client_id, frame[at : at + max(0, length)].decode(), frame)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """One size-delimited message, with its size. Raises IncompleteReadError (an EOFError) at the end."""
    head = await reader.readexactly(4)
    (size,) = struct.unpack(">i", head)
    if not 0 < size < LONGEST_FRAME:
        raise ValueError(f"a message of {size} bytes: this is not Kafka's protocol")
    return head + await reader.readexactly(size)
