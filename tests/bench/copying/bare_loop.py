"""A loop with only the steps that a mirror with transactions cannot leave out.

It fetches from one partition, produces the batch with one offset record and ends the transaction, on three blocking
sockets in one thread, with transaction version 2 (KIP-890). It has no converters, limits, metrics, retries of lost
connections or rebalances. Its latency is the least that a program in Python reaches on the same brokers.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from keelman.kafka.batches.producer_requests import EndTxnWithEpoch, InitProducerId, ProduceAdding
from keelman.kafka.batches.record_batch import pack, record_batches, stamp
from keelman.kafka.error_codes import CODES
from keelman.kafka.fetching.session import FetchSession
from keelman.kafka.fetching.settings import FetchSettings

CLIENT = "bare-loop"
VERSIONS = {1: (4, 11)}
"""The versions of Fetch, the only request here whose version is negotiated."""
PASSING = {CODES["CONCURRENT_TRANSACTIONS"], CODES["COORDINATOR_NOT_AVAILABLE"], CODES["NOT_COORDINATOR"]}
RETRY_SECONDS = 0.001
SOCKET_SECONDS = 10.0
TRANSACTION_MS, ACKS, REQUEST_MS, WAIT_MS, MAX_BYTES = 10_000, -1, 30_000, 500, 1 << 20


class Connection:
    """A blocking connection with one request in flight at a time."""

    def __init__(self, bootstrap: str) -> None:
        """Connects to the one broker."""
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), SOCKET_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0

    def send(self, request: Any) -> Any:
        """Sends a request; returns it for `receive`."""
        self._number += 1
        header = request.build_request_header(correlation_id=self._number, client_id=CLIENT)
        message = header.encode() + request.encode()
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        return request

    def receive(self, request: Any) -> Any:
        """Waits for the answer to the last request. Raises OSError."""
        (size,) = struct.unpack(">i", self._exactly(4))
        data = BytesIO(self._exactly(size))
        request.parse_response_header(data)
        return request.RESPONSE_TYPE.decode(data)

    def ask(self, request: Any) -> Any:
        """Sends a request and waits for its answer."""
        return self.receive(self.send(request))

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            data += piece
        return bytes(data)


@contextlib.contextmanager
def copying(bootstrap: str, source: str, target: str, offsets: str) -> Iterator[None]:
    """Copies partition 0 of `source` to that of `target` in a thread until the end of the block.

    `offsets` is the topic for the offset records. All three topics exist, on a single broker.
    """
    stop = threading.Event()
    connections = [Connection(bootstrap) for _ in range(3)]
    thread = threading.Thread(target=_copy, args=(connections, source, target, offsets, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(SOCKET_SECONDS)
        for connection in connections:
            connection.close()


def _copy(connections: list[Connection], source: str, target: str, offsets: str, stop: threading.Event) -> None:
    fetches, batches, coordinator = connections
    transactional_id = f"{CLIENT}-{target}"
    identity = _passed(lambda: coordinator.ask(InitProducerId(transactional_id, TRANSACTION_MS)))
    session, position = FetchSession(FetchSettings(), isolation=1), 0

    def fetch() -> Any:
        return fetches.send(session.request({(source, 0): (position, -1)}, WAIT_MS).prepare(VERSIONS))

    under_way = fetch()
    key = json.dumps([CLIENT, {"cluster": "here", "partition": 0, "topic": source}]).encode()
    while not stop.is_set():
        (data,) = [part.data for part in session.answered(fetches.receive(under_way))] or [b""]
        results = [(header, bytearray(batch)) for header, batch in record_batches(data)]
        if results:
            position = results[-1][0].last_offset + 1
        under_way = fetch()
        for header, batch in results:
            value = b'{"offset":%d}' % header.last_offset
            now = int(time.time() * 1000)
            ((offset, _, _),) = pack([value], [key], None, None, now_ms=now, codec=0, most_bytes=MAX_BYTES)
            for item in (batch, offset):
                stamp(item, identity.producer_id, identity.epoch, 0, transactional=True)
            topics = {target: [(0, batch)], offsets: [(0, offset)]}
            request = ProduceAdding(transactional_id, ACKS, REQUEST_MS, topics)
            _passed(lambda request=request: batches.ask(request))  # type: ignore[misc]
            end = EndTxnWithEpoch(transactional_id, identity.producer_id, identity.epoch, True)
            identity = _passed(lambda end=end: coordinator.ask(end))  # type: ignore[misc]


def _passed(ask: Callable[[], Any]) -> Any:
    """The first answer without an error. Raises AssertionError for an error that is not transient."""
    while True:
        answer = ask()
        codes = {part.error_code for part in answer.parts} if hasattr(answer, "parts") else {answer.error_code}
        if not codes - {0}:
            return answer
        assert codes - {0} <= PASSING, f"{type(answer).__name__}: error codes {sorted(codes)}"
        time.sleep(RETRY_SECONDS)
