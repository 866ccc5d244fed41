"""A dispatcher of the Spark service with a clock to turn, and a record of its actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.api.copy.v1.slot_service_pb2 import AttachResponse, SlotBeat, SlotGreeting
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.rpc.times import to_duration
from keelman.spark.copy_runs.runs import Owner
from keelman.spark.data_sets.reads import PartRequest
from keelman.spark.dispatch import Dispatcher
from keelman.spark.slots.choice import Slot, SlotLimits, SlotState
from keelman.spark.slots.mailbox import Mailbox
from keelman.spark.slots.pool import Times
from keelman.spark.slots.shortage import Shortage

PENDING, RUNNING = states.COPY_RUN_STATE_PENDING, states.COPY_RUN_STATE_RUNNING
ENDED, FAILED = states.COPY_RUN_STATE_ENDED, states.COPY_RUN_STATE_FAILED
MB = 1 << 20
ME, NEXT, OTHER = Owner("wc", "me:1", "1"), Owner("wc", "me:1", "2"), Owner("wc", "other:1", "1")


@dataclass
class World:
    """A dispatcher with a clock to turn, and a record of its actions."""

    limits: SlotLimits = field(default_factory=lambda: SlotLimits(1, 2, 2))
    busy: float = 0.0
    now: float = 1000.0
    shortage: Shortage | None = None
    ends: dict[int, str] = field(default_factory=dict)
    started: list[Slot] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    told: list[RunUpdate] = field(default_factory=list)
    mail: dict[str, Mailbox] = field(default_factory=dict)

    def __post_init__(self) -> None:
        times = Times(lease=3, beat=5, slot_idle=60, slot_start=30)
        self.d = Dispatcher(
            self,
            self.limits,
            times,
            busy_bytes_per_second=self.busy,
            unfit=lambda ticket: "",
            look_at=lambda task, data, done: None,
            end_of=lambda pid: self.ends.get(pid, ""),
            shortage=lambda: self.shortage,
            clock=lambda: self.now,
        )

    def start(self, slot: Slot, data: PartRequest | None, on_end: Callable[[str, str], None]) -> None:
        self.end_job = on_end
        self.started.append(slot)
        self.tokens[slot.id] = slot.token

    def cancel(self, slot_id: str) -> None:
        self.cancelled.append(slot_id)

    def put(self, update: RunUpdate) -> None:
        self.told.append(update)

    def ticket(self, uid: str, owner: Owner = ME, plugin: str = "", worker_cluster: str = "") -> None:
        cluster = worker_cluster or owner.worker_cluster
        ticket = StartTicket(run_uid=uid, worker_cluster=cluster, worker_id=owner.worker, connector=f"c-{uid[:1]}")
        ticket.plugin.folder = plugin
        self.d.order(owner, RunOrder(run_uid=uid, start=ticket))

    def attach(self, slot: Slot) -> None:
        _, self.mail[slot.id] = self.d.attach(SlotGreeting(slot=slot.id, token=self.tokens[slot.id], pid=1, host="h"))

    def running(self, uid: str, owner: Owner = ME) -> Slot:
        self.ticket(uid, owner)
        slot = self.d.pool.slots[self.run(uid).slot]
        if slot.state is SlotState.STARTING:
            self.attach(slot)
        self.d.update(slot, RunUpdate(run_uid=uid, state=RUNNING))
        return slot

    def run(self, uid: str) -> states.CopyRun:
        book = self.d.book.get(uid)
        assert book is not None
        return book.copy_run

    def sent(self, slot: Slot) -> list[AttachResponse]:
        queue = self.mail[slot.id].queue
        return [queue.get_nowait() for _ in range(queue.qsize())]

    def orders(self, slot: Slot) -> list[tuple[str, str | None]]:
        return [(m.order.run_uid, m.order.WhichOneof("order")) for m in self.sent(slot) if m.HasField("order")]

    def after(self, seconds: float, *, beats: bool = True, renew: bool = True) -> None:
        """Turns the clock in small steps, with or without signs of life."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.5)
            for slot in list(self.d.pool.slots.values()) if beats else ():
                if slot.state is SlotState.ATTACHED:
                    self.d.pool.beat(
                        slot, SlotBeat(cpu_time=to_duration(slot.cpu_seconds), memory_bytes=slot.memory_bytes)
                    )
            for owner in list(self.d.leases) if renew else ():
                self.d.leases.renew(owner)
            self.d.tick()
