"""A data service whose documents are ready frames, so that only its client limits its rate.

In a process of its own: `python -m support.couchbase.recorded --documents 1000000` prints its address, and ends with
its standard input. Streams that are open take turns, document by document, as a server's do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import sys
import threading

import numpy as np
import numpy.typing as npt

from support.couchbase.frames import HEADER, Sent
from support.couchbase.server import CouchbaseServer
from support.couchbase.session import Session
from support.couchbase.streams import Stream
from support.couchbase.vbuckets import MUTATION, History

DOCUMENT_BYTES = 300
TOGETHER = 16
"""So many streams take turns; then the next ones do."""
PIECE_BYTES = 1 << 18
GATHER_SECONDS = 0.02
_KEY = b"\0doc-000-0000000"
_VBUCKET, _OPAQUE, _SEQNO = slice(6, 8), slice(12, 16), slice(24, 32)
_KEY_AT = 24 + 31
Bytes = npt.NDArray[np.uint8]


def document(number: str) -> bytes:
    """A document of `DOCUMENT_BYTES`."""
    fields = {
        "type": "hotel", "id": number, "name": "Medway Youth Hostel", "address": "Capstone Road, ME7 3JE",
        "city": "Medway", "country": "United Kingdom", "vacancy": True, "pets_ok": False,
        "geo": {"lat": 51.35785, "lon": 0.55818}, "reviews": [4, 5, 3],
        "description": "",
    }  # fmt: skip
    fields["description"] = "x" * (DOCUMENT_BYTES - len(json.dumps(fields)))
    return json.dumps(fields).encode()


def ready(documents: int) -> Bytes:
    """The frames of one vbucket's documents, one a row, without the fields that distinguish vbuckets."""
    value = document("000-0000000")
    extras = struct.pack(">QQIIIHB", 0, 1, 0x0200_0000, 0, 0, 0, 0)
    body = len(extras) + len(_KEY) + len(value)
    lengths = len(_KEY), len(extras)
    frame = HEADER.pack(0x80, MUTATION, *lengths, 1, 0, body, 0, 1_700_000_000_000_001) + extras + _KEY + value
    rows = np.tile(np.frombuffer(frame, dtype=np.uint8), (documents, 1))
    numbers = np.arange(1, documents + 1, dtype=">u8")
    rows[:, _SEQNO] = numbers.view(np.uint8).reshape(documents, 8)
    digits = (np.arange(documents)[:, None] // 10 ** np.arange(6, -1, -1)) % 10 + ord("0")
    for at in (_KEY_AT + _KEY.index(b"0000000"), _KEY_AT + len(_KEY) + value.index(b"0000000")):
        rows[:, at : at + 7] = digits
    return rows


def frame_bytes() -> int:
    """The size of one document's frame."""
    return int(ready(1).shape[1])


class Recorded(History):
    """A vbucket with a number of documents and no other items."""

    __slots__ = ("documents",)
    documents: int

    @property
    def high(self) -> int:
        """The number of the last document."""
        return self.documents


class RecordedSession(Session):
    """Sends the ready frames of the open streams."""

    async def _send_changes(self) -> None:
        frames: Bytes = self.server.frames  # type: ignore[attr-defined]
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(GATHER_SECONDS)
            open_now = [stream for stream in self.streams.items() if stream[1].at < stream[1].history.high]
            for at in range(0, len(open_now), TOGETHER):
                await self._turns(open_now[at : at + TOGETHER], frames)

    async def _turns(self, streams: list[tuple[int, Stream]], frames: Bytes) -> None:
        begin = min(stream.at for _, stream in streams)
        block = np.repeat(frames[begin:, None, :], len(streams), axis=1)
        value_at = _KEY_AT + len(_KEY) + document("000-0000000").index(b"000-")
        for place, (vbucket, stream) in enumerate(streams):
            self._send(Sent(0x56, vbucket, stream.opaque, struct.pack(">QQI", 0, stream.history.high, 1)))
            block[:, place, _VBUCKET] = np.frombuffer(struct.pack(">H", vbucket), dtype=np.uint8)
            block[:, place, _OPAQUE] = np.frombuffer(struct.pack(">I", stream.opaque), dtype=np.uint8)
            for at in (_KEY_AT + 5, value_at):
                block[:, place, at : at + 3] = np.frombuffer(b"%03d" % (vbucket % 1000), dtype=np.uint8)
            stream.at = stream.history.high
        data = memoryview(block.reshape(-1))
        step = PIECE_BYTES // frames.shape[1] * frames.shape[1]  # answers go between whole frames
        for at in range(0, len(data), step):
            while self._full:
                await self._wake.wait()
                self._wake.clear()
            piece = data[at : at + step]
            self.writer.write(piece)
            self.unacknowledged += len(piece)
            await self.writer.drain()
        self._wake.set()


class RecordedServer(CouchbaseServer):
    """A server of one node."""

    session = RecordedSession

    def __init__(self, vbuckets: int, documents: int) -> None:
        super().__init__(vbuckets=vbuckets)
        each = documents // vbuckets
        self.frames = ready(each)
        for number in self.vbuckets:
            self.vbuckets[number] = history = Recorded(number, 0)
            history.documents = each


def main() -> None:
    """Serves until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vbuckets", type=int, default=64)
    parser.add_argument("--documents", type=int, default=1_000_000)
    options = parser.parse_args()
    server = RecordedServer(options.vbuckets, options.documents)
    server.start()
    print(server.seeds, flush=True)
    sys.stdin.read()
    threading.excepthook = lambda _: None
    server.stop()


if __name__ == "__main__":
    main()
