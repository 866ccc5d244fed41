"""Reads a broker's answers from its connection, and has each handled in the turn of the loop in which it comes.

The library reads a stream in a task and sets futures: three turns of the loop from the socket to the code that waits
for an answer. A copy run that moves a record now and then waits for three answers a record, with nothing else to do.
"""

from __future__ import annotations

import asyncio
import struct
import time
import weakref
from collections.abc import Callable
from contextvars import Context
from io import BytesIO
from typing import Any, TypeAlias

from aiokafka.conn import CloseReason
from aiokafka.errors import CorrelationIdError

CHUNK_BYTES = 1 << 14
"""The size of one read; the rest of a larger answer is read straight into its own buffer."""
_SIZE = struct.Struct(">i")
_Heard: TypeAlias = Callable[[Any], object]


class Answer(asyncio.Future[Any]):
    """A broker's answer to one request: a future that continues its waiters at once when the answer comes.

    A failure or a cancellation reaches them in the next turn, as with any future: any code may cause it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._heard: list[tuple[_Heard, Context | None]] = []

    def come(self, answer: Any) -> None:
        """Sets the answer and runs its waiters now. Called by the loop itself, not in a task."""
        heard, self._heard = self._heard, []
        super().set_result(answer)
        for function, context in heard:
            try:
                if context is None:
                    function(self)
                else:
                    context.run(function, self)
            except Exception as error:  # as the loop does for its callbacks
                self.get_loop().call_exception_handler(
                    {"message": f"what waits for an answer failed: {function!r}", "exception": error, "future": self}
                )

    def add_done_callback(self, function: _Heard, /, *, context: Context | None = None) -> None:
        """Registers a function to call once the answer is done."""
        if self.done():
            super().add_done_callback(function, context=context)
        else:
            self._heard.append((function, context))

    def remove_done_callback(self, function: _Heard, /) -> int:
        """Unregisters a function; returns how many times it was registered."""
        before = len(self._heard)
        self._heard = [entry for entry in self._heard if entry[0] != function]
        return before - len(self._heard) + super().remove_done_callback(function)

    def set_result(self, result: Any, /) -> None:
        """Sets the answer; its waiters continue in the next turn."""
        self._later()
        super().set_result(result)

    def set_exception(self, exception: type | BaseException, /) -> None:
        """Fails the answer with this error."""
        self._later()
        super().set_exception(exception)

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancels the wait for the answer."""
        self._later()
        return super().cancel(msg)

    def _later(self) -> None:
        heard, self._heard = self._heard, []
        for function, context in heard:
            super().add_done_callback(function, context=context)


class Occasion:
    """An event that happens again and again, for tasks to wait for the next time. Used in one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Answer] = []

    def wait(self) -> Answer:
        """Returns an answer that is done at the next occurrence."""
        answer = Answer(self._loop)
        self._waiting.append(answer)
        return answer

    def happen(self, *, at_once: bool = False) -> None:
        """Wakes the waiters in the next turn, or at once if the loop itself calls this."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if waiter.done():
                continue
            if at_once:
                waiter.come(None)
            else:
                waiter.set_result(None)


class AnswerProtocol(asyncio.BufferedProtocol):
    """Takes over a connection of the library after its login, with no request under way. The library still handles the
    connection's end: it closes the connection and fails requests without an answer."""

    def __init__(self, connection: Any) -> None:
        self._connection = weakref.ref(connection)  # the library closes a connection that its owner has forgotten
        self._before: asyncio.StreamReaderProtocol = connection._protocol
        self._chunk = bytearray(CHUNK_BYTES)
        self._view = memoryview(self._chunk)
        self._filled = 0
        self._large: bytearray | None = None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns the buffer for the next bytes."""
        return self._view[self._filled :] if self._large is None else memoryview(self._large)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Processes `nbytes` new bytes."""
        self._filled += nbytes
        if self._large is None:
            self._take_whole()
        elif self._filled == len(self._large):
            frame, self._large, self._filled = self._large, None, 0
            self._take(frame)

    def eof_received(self) -> bool | None:
        """Notes that the broker sends nothing more."""
        return self._before.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notes the end of the connection."""
        self._before.connection_lost(exc)

    def pause_writing(self) -> None:
        """Notes that the broker takes less than is sent."""
        self._before.pause_writing()

    def resume_writing(self) -> None:
        """Notes that the broker takes more again."""
        self._before.resume_writing()

    def _take_whole(self) -> None:
        """Takes all complete answers; keeps the rest for the following bytes."""
        view, at, end = self._view, 0, self._filled
        while end - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(view, at)
            begin, at = at + _SIZE.size, at + _SIZE.size + size
            if size < 0:
                raise ValueError(f"an answer of {size} bytes")
            if at <= end:
                self._take(bytes(view[begin:at]))
            elif size > CHUNK_BYTES - _SIZE.size:
                self._large, self._filled = bytearray(size), end - begin
                self._large[: self._filled] = view[begin:end]
                return
            else:
                at = begin - _SIZE.size
                break
        self._filled = end - at
        if at and self._filled:
            self._chunk[: self._filled] = self._chunk[at:end]

    def _take(self, frame: bytes | bytearray) -> None:
        connection = self._connection()
        if connection is None or connection._writer is None:
            return  # closed meanwhile
        if not connection._requests:
            connection.close(CloseReason.OUT_OF_SYNC, CorrelationIdError("an answer that no request is under way for"))
            return
        number, request, waiting = connection._requests[0]
        try:
            data = BytesIO(frame)
            correlation_id = request.parse_response_header(data).correlation_id
            if correlation_id == number:
                answer = None if waiting.done() else request.RESPONSE_TYPE.decode(data)
        except Exception as error:
            connection.close(CloseReason.CONNECTION_BROKEN, error)
            return
        if correlation_id != number:
            if not waiting.done():
                waiting.set_exception(
                    CorrelationIdError(f"correlation ids do not match: sent {number}, came {correlation_id}")
                )
            connection.close(CloseReason.OUT_OF_SYNC)
            return
        connection._last_action = time.monotonic()
        connection._requests.popleft()
        if isinstance(waiting, Answer) and not waiting.done():
            waiting.come(answer)
        elif not waiting.done():
            waiting.set_result(answer)
