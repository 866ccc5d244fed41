"""Writes this worker's statuses to the status topic, again if a former owner's late record has replaced them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from keelman.kafka.writer import Record
from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.model.work import Work
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import REDACTOR
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.storage.status_state import Status, StatusState, key_of, work_of

log = get_logger()
PLACE_SECONDS = 0.1


@dataclass
class StatusWriter:
    """`put` a status and `run` writes it soon; `read` must be called after each record of the status topic.

    `config` and `statuses` are the tables read. `write` appends to the status topic and `read_config` reads the config
    topic to its end: both raise DeadlineExceeded and Unavailable. `may_write` is that of `WorkerStore`."""

    config: ConfigState
    statuses: StatusState
    _: KW_ONLY
    write: Callable[[Sequence[Record]], Awaitable[None]]
    read_config: Callable[[], Awaitable[None]]
    may_write: Callable[[], bool]
    _pending: dict[Work, Status | None] = field(default_factory=dict)
    _said: dict[Work, Status] = field(default_factory=dict)
    _erased: set[Work] = field(default_factory=set)  # the work whose status a tombstone has erased
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _written: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, work: Work, status: Status | None) -> None:
        """Has a status (None: a tombstone) written soon; the newest of each wins."""
        if status is not None and status.trace:
            status = replace(status, trace=REDACTOR.hide(status.trace))
        self._pending.pop(work, None)
        self._pending[work] = status
        self._said.pop(work, None)
        if status is not None:
            self._said[work] = status
        self._written.clear()
        self._wake.set()

    def forget(self) -> None:
        """Forgets the statuses that are not written yet: the group has lost this worker, their work is another's."""
        self._pending.clear()
        self._said.clear()
        self._erased.clear()
        self._written.set()

    async def flush(self, *, seconds: float) -> None:
        """Waits until the statuses that were put are written, for at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._written.wait()
        except TimeoutError:
            log.warning("statuses_unwritten", statuses=len(self._pending))

    async def run(self) -> None:
        """Writes put statuses, until cancelled; writes nothing while the worker has no place in its group."""
        backoff = Backoff(first=0.1, most=2.0)
        while True:
            self._wake.clear()
            if (self._pending or self._erased) and not self.may_write():
                await asyncio.sleep(PLACE_SECONDS)
                continue
            batch = dict(self._pending)
            allowed = [(work, status) for work, status in batch.items() if self._is_current(work, status)]
            try:
                if self._erased:
                    await self._write_erased()
                    continue  # perhaps without its place by now
                if allowed:
                    await self.write([(key_of(w), s.value() if s else None) for w, s in allowed])
            except (Unavailable, DeadlineExceeded) as error:
                if backoff.is_new(error.message):
                    log.warning("statuses_unwritten", error=error.message)
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            for work, status in batch.items():
                if work in self._pending and self._pending[work] is status:
                    del self._pending[work]
            if not self._pending:
                self._written.set()
                await self._wake.wait()

    def _is_current(self, work: Work, status: Status | None) -> bool:
        """Returns whether it may be written. A tombstone for work that was made again meanwhile would erase the new
        status."""
        return work not in self.config.work() if status is None else self.statuses.allows(work, status)

    async def _write_erased(self) -> None:
        """Writes statuses again that a late tombstone has erased: their work was made again before the tombstone
        came."""
        await self.read_config()  # else it would write statuses of deleted work
        erased, self._erased = self._erased, set()
        for work in erased & self._said.keys() - self._pending.keys():
            if work not in self.config.work():
                del self._said[work]
            elif work not in self.statuses.statuses:
                self.put(work, self._said[work])

    def read(self, key: str) -> None:
        """Takes note that a record of this key was read from the status topic, and is in `statuses`."""
        self._find_again(key)
        self._write_again(key)

    def _find_again(self, key: str) -> None:
        """Forgets a lost status when a newer one has come: not one of this worker's that was already on its way."""
        work = work_of(key)
        lost = self.statuses.lost.get(work) if work is not None else None
        if work is None or lost is None:
            return
        status = self.statuses.statuses.get(work)
        if status is None or status.worker_id != lost.worker_id or work in self._said:
            del self.statuses.lost[work]

    def _write_again(self, key: str) -> None:
        """Writes this worker's status again over the late record of a frozen worker, sent when that lost its place:
        this worker's is the later.

        That record may come after a tombstone too."""
        work = work_of(key)
        said = self._said.get(work) if work is not None else None
        status = self.statuses.statuses.get(work) if work is not None else None
        if work is None or said is None or work in self._pending:
            return
        if status is None:
            self._erased.add(work)
            self._wake.set()
        elif status.worker_id != said.worker_id and status.generation < said.generation:
            self.put(work, said)
