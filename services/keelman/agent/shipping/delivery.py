"""Delivers one stream to one target for as long as it is wanted, and continues after any problem from the kept
position."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from keelman.agent.shipping.progress import DeliveryProgress, read_progress, write_progress
from keelman.agent.shipping.source import Source, Stream
from keelman.agent.shipping.target import LogTarget, LogWriter, finished
from keelman.api.node.v1.workload_pb2 import LogProblem
from keelman.model.errors import KeelmanError
from keelman.rpc.times import to_timestamp
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import wait_or_stop

log = get_logger()
LOOK_SECONDS = 0.5
KEEP_SECONDS = 30.0
"""The interval at which a position is kept that moved over lines that are not delivered."""
MAX_BACKOFF_SECONDS = 5.0
SHOWN_SECONDS = 3.0
"""A problem that is over sooner, such as a broker's restart, is only logged."""
RETOLD_SECONDS = 60.0


class Delivery:
    """`file` keeps the position; lines before the first `run` are passed over where the stream is about one cluster,
    since they were another one's."""

    def __init__(
        self,
        stream: Stream,
        kind: str,
        file: Path,
        target: Callable[[Callable[[DeliveryProgress], None]], LogTarget],
        on_problem: Callable[[], None],
    ) -> None:
        """`target` makes the target, which may store its next action. Calls `on_problem` when `shown` changes."""
        self.stream = stream
        self.kind = kind
        self.problem = ""
        """Why nothing can be delivered, for people; empty while all is well."""
        self._since: datetime | None = None
        self._on_problem = on_problem
        self._shown: LogProblem | None = None
        self._shown_at = 0.0
        self._file = file
        self._source = Source(stream)
        self._target = target(self._keep)
        self._kept: DeliveryProgress | None = None
        self._is_last = asyncio.Event()
        self._done = asyncio.Event()
        self._waited_since: float | None = None
        self._kept_at = float("-inf")

    @property
    def position(self) -> int:
        """Everything before it in the log is at the target."""
        return 0 if self._kept is None else self._kept.position

    @property
    def shown(self) -> LogProblem | None:
        """The problem as users see it, once it has lasted for SHOWN_SECONDS; None while there is none."""
        return self._shown

    async def finish(self, seconds: float) -> bool:
        """Returns when all of the log, which has ended, is delivered; False when it is not in time."""
        self._is_last.set()
        return await wait_or_stop(self._done, seconds)

    async def run(self, former: asyncio.Task[Any] | None = None) -> None:
        """Runs until cancelled, or until all is delivered once `finish` was called; after the `former` one's end."""
        if former is not None:
            await asyncio.wait([former])
        backoff = Backoff(first=0.2, most=MAX_BACKOFF_SECONDS)
        try:
            while not self._done.is_set():
                try:
                    self._begin()
                    async with self._target.opened(self._source) as writer:
                        await self._deliver(writer, backoff)
                except (KeelmanError, OSError) as error:
                    self._note_problem(error.message if isinstance(error, KeelmanError) else str(error))
                    await asyncio.sleep(backoff.next())
                except Exception as error:
                    log.error("log_delivery_fault", stream=self.stream.name, target=self.kind, exc_info=error)
                    self._note_problem(repr(error))
                    await asyncio.sleep(MAX_BACKOFF_SECONDS)
        finally:
            self._source.close()

    def _begin(self) -> None:
        if self._kept is None:
            progress = read_progress(self._file)
            if progress is None:
                progress = self._source.at_end(DeliveryProgress()) if self.stream.about else DeliveryProgress()
                write_progress(self._file, progress)
            self._kept = progress

    async def _deliver(self, writer: LogWriter, backoff: Backoff) -> None:
        """Delivers batches. Raises the target's errors."""
        self._keep(await writer.resume(self._source.place(self._known)))
        while True:
            is_last = self._is_last.is_set()
            progress = self._source.place(self._known)
            if progress != self._known:
                self._keep(progress)
            if not self._is_due(self._source.waiting(progress)) and not is_last:
                await self._look_again()
                continue
            whole = is_last and not self.stream.about  # another's log continues
            batch = await finished(asyncio.to_thread(self._source.read, progress, self._target.most_bytes, last=whole))
            if batch is None:
                if is_last:
                    self._done.set()
                    return
                await self._look_again()
                continue
            if batch.lost:
                log.error("log_lines_lost", stream=self.stream.name, target=self.kind, bytes=batch.lost)
            if batch.lines:
                self._keep(await writer.write(batch, progress))
                backoff.reset()
                self._note_problem("")
            else:
                self._pass_over(replace(progress, position=batch.end, mine=batch.mine))
            self._waited_since = None

    @property
    def _known(self) -> DeliveryProgress:
        assert self._kept is not None
        return self._kept

    def _is_due(self, waiting: int) -> bool:
        if not waiting:
            self._waited_since = None
            self._note_problem("")
            return False
        if self._waited_since is None:
            self._waited_since = time.monotonic()
        return self._target.is_due(waiting, time.monotonic() - self._waited_since)

    async def _look_again(self) -> None:
        await wait_or_stop(self._is_last, LOOK_SECONDS)

    def _pass_over(self, progress: DeliveryProgress) -> None:
        if time.monotonic() - self._kept_at > KEEP_SECONDS:
            self._keep(progress)
        self._kept = progress

    def _keep(self, progress: DeliveryProgress) -> None:
        if progress != self._kept:
            write_progress(self._file, progress)
            self._kept, self._kept_at = progress, time.monotonic()

    def _note_problem(self, problem: str) -> None:
        """Notes a problem, or that it is over; logs it when it comes and when it goes, not each time."""
        if bool(problem) != bool(self.problem):
            self._since = datetime.now(UTC) if problem else None
            if problem:
                log.warning("log_not_delivered", stream=self.stream.name, target=self.kind, error=problem)
            else:
                log.info("log_delivered_again", stream=self.stream.name, target=self.kind)
        self.problem = problem
        self._show()

    def _show(self) -> None:
        """Updates the shown problem. The text of a lasting one is renewed now and then: some servers number each of
        their answers."""
        before, since, now = self._shown, self._since, time.monotonic()
        if since is None:
            self._shown = None
        elif (datetime.now(UTC) - since).total_seconds() < SHOWN_SECONDS:
            return
        elif before is None or (before.message != self.problem and now - self._shown_at >= RETOLD_SECONDS):
            self._shown_at = now
            self._shown = LogProblem(
                stream=self.stream.name, target=self.kind, message=self.problem, since=to_timestamp(since)
            )
        if self._shown != before:
            self._on_problem()
