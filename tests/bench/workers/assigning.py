"""The leader's part in a round of many connectors: seconds, the longest stop of its event loop, and bytes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import statistics
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.measuring.figures import Figure, alone
from keelman.kafka.groups.connect_protocol import Metadata, OwnFields, decode_assignment, encode_metadata
from keelman.kafka.groups.protocol import Joined
from keelman.model.work import MemberAssignment, Work
from keelman.runtime.supervise import Siblings
from keelman.worker.config.typed import checked
from keelman.worker.group.leader import GroupLeader
from keelman.worker.group.membership import Membership
from keelman.worker.standalone import StandaloneStore
from keelman.worker.storage import config_records as records
from keelman.worker.tasks.heap import Heap
from support.worker.store import store_callbacks
from support.worker_properties import alone as standalone

CONNECTORS, TASKS, MEMBERS = 10_000, 2, 200
WRITTEN_TOGETHER = 500
"""Connectors whose records are written together."""
TICK_SECONDS = 0.001
SECONDS_GOAL, BLOCKED_GOAL, BYTES_GOAL = "<= 0.5", "<= 50", "<= 500"
LEADER = "connect-00000"


async def measured(folder: Path, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Plays a first round, one in which nothing changes, one after measures of the tasks, and one with a tenth more
    members; each from the members' bytes to the bytes of their assignments."""
    folder.mkdir(parents=True, exist_ok=True)
    seconds: dict[str, list[float]] = {}
    blocked: list[float] = []
    sizes: list[float] = []
    async with _store(folder) as store, AsyncExitStack() as stack:
        stack.enter_context(Heap().watched())  # as a worker has it
        gc.collect()
        say(f"{CONNECTORS:,} connectors with {TASKS} tasks each are stored")
        for _ in range(rounds):
            group = _Group(store)
            for name, members in (("first", MEMBERS), ("next", MEMBERS), ("weighed", MEMBERS), ("grown", 220)):
                took, longest = await group.round(members, weighed=name in {"weighed", "grown"})
                seconds.setdefault(name, []).append(took)
                blocked.append(longest * 1000)
                sizes.append(group.bytes / 1000)
                say(f"{name}: {took:.2f} s, the loop stood still for {longest * 1000:.0f} ms, {group.bytes:,} bytes")
    return [
        *(
            alone(f"assign-{name}", "s", values, statistics.median(values), SECONDS_GOAL)
            for name, values in seconds.items()
        ),
        alone("assign-blocked", "ms", blocked, max(blocked), BLOCKED_GOAL),
        alone("assign-bytes", "kB", sizes, max(sizes), BYTES_GOAL),
    ]


@contextlib.asynccontextmanager
async def _store(folder: Path) -> AsyncIterator[StandaloneStore]:
    """A worker's store with the configurations of all connectors and tasks."""
    properties = checked(standalone(folder / "offsets"), standalone=True)
    store = StandaloneStore(properties, worker_id="w:1", callbacks=store_callbacks())
    async with Siblings() as siblings:
        siblings.start(store.run())
        for begin in range(0, CONNECTORS, WRITTEN_TOGETHER):
            written: list[tuple[bytes, bytes | None]] = []
            for number in range(begin, begin + WRITTEN_TOGETHER):
                name, config = _connector(number), {"connector.class": "FileStreamSource", "file": "/x"}
                written += [records.connector_record(name, config), *records.task_records(name, [config] * TASKS)]
                written.append(records.commit_record(name, TASKS))
            await store.config_topic.write(written)
        assert len(store.config.tasks) == CONNECTORS
        yield store


@dataclass
class _Group:
    """A group whose members follow their assignments; the leader is a worker's own."""

    store: StandaloneStore
    owned: dict[str, frozenset[Work]] = field(default_factory=dict)
    answers: Sequence[tuple[str, bytes]] = ()
    bytes: int = 0
    generation: int = 0

    def __post_init__(self) -> None:
        self._leader = GroupLeader(self.store, url=_url(LEADER), delay_ms=0, wake=lambda: None)
        self._coordinator = _Coordinator()
        group: Any = self._coordinator
        self._membership = Membership(
            group, group_id="g", session_ms=10_000, heartbeat_ms=3_000, wake=lambda: None,
            on_member=lambda member, leads: None,
        )  # fmt: skip

    async def round(self, members: int, *, weighed: bool) -> tuple[float, float]:
        """Plays a round; returns its seconds, and the longest time in which the loop did nothing else."""
        names = [f"connect-{number:05d}" for number in range(members)]
        offset = self.store.config.offset
        self._coordinator.members = tuple((name, self._metadata(name, offset, weighed=weighed)) for name in names)
        with _longest_stop() as longest:
            await asyncio.sleep(10 * TICK_SECONDS)
            begun = time.perf_counter()
            events: Any = None
            await self._membership.join(lambda: Metadata(_url(LEADER), offset), self._leader.share, events)
            took = time.perf_counter() - begun
            await asyncio.sleep(10 * TICK_SECONDS)
        answers = self._coordinator.answers
        assert len(answers) == members
        self.bytes = sum(len(raw) for _, raw in (*self._coordinator.members, *answers))
        for name, raw in answers:
            told = decode_assignment(raw)
            assert not told.error, told
            self.owned[name] = (self.owned.get(name, frozenset()) - set(told.revoked)) | set(told.assigned)
        owned = [work for name in names for work in self.owned[name]]
        assert len(owned) == len(set(owned))
        return took, longest.seconds

    def _metadata(self, name: str, offset: int, *, weighed: bool) -> bytes:
        works = self.owned.get(name, frozenset())
        allocation = MemberAssignment(LEADER, _url(LEADER), offset, tuple(sorted(works))) if works else None
        weights = {work: 1 << zlib.crc32(work.connector.encode()) % 5 for work in works if work.is_task}
        own = OwnFields(weights=weights if weighed else {})
        return encode_metadata(Metadata(_url(name), offset, allocation, own))


class _Coordinator:
    """Answers the leader's JoinGroup with the members' metadata, and keeps the assignments of its SyncGroup."""

    def __init__(self) -> None:
        self.members: tuple[tuple[str, bytes], ...] = ()
        self.answers: Sequence[tuple[str, bytes]] = ()
        self._generation = 0

    async def join(self, member: str, protocol_type: str, protocols: object) -> Joined:
        self._generation += 1
        return Joined(0, self._generation, LEADER, LEADER, self.members)

    async def sync(self, generation: int, member: str, answers: Sequence[tuple[str, bytes]]) -> tuple[int, bytes]:
        self.answers = answers
        by_name: Mapping[str, bytes] = dict(answers)
        return 0, by_name[member]


class _Stop:
    seconds = 0.0


@contextlib.contextmanager
def _longest_stop() -> Any:
    """Measures, for the block, the longest time in which the loop ran no other task."""
    longest = _Stop()

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            longest.seconds = max(longest.seconds, time.perf_counter() - before - TICK_SECONDS)

    task = asyncio.ensure_future(tick())
    try:
        yield longest
    finally:
        task.cancel()


def _connector(number: int) -> str:
    """A name of which little can be compressed: the bytes of a group are mostly names."""
    return f"orders-{zlib.crc32(str(number).encode()):08x}"


def _url(name: str) -> str:
    return f"http://10.0.0.1:{8083 + int(name[-5:])}/"
