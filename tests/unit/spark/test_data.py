"""A task whose data Spark reads: held until Spark has planned the read, a slot per part, each write started once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.api.copy.v1.slot_service_pb2 import SlotGreeting
from keelman.api.copy.v1.ticket_pb2 import Bulk, StartTicket
from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.connect.tasks.data_set import PART, PARTS, PASSING, PROBLEM, SPLIT, DataSet
from keelman.model.errors import InvalidArgument
from keelman.spark.copy_runs.runs import Owner
from keelman.spark.data_sets.reads import PartRequest, Split, Unread, python_source, shape, wanted
from keelman.spark.dispatch import Dispatcher
from keelman.spark.slots.choice import Need, NewSlot, Slot, SlotLimits, Wait, choose
from keelman.spark.slots.pool import Times

ME = Owner("wc", "me:1", "1")
LIMITS = SlotLimits(slots_per_worker=1, runs_per_slot=2, max_slots=3)
CONFIG = {"connector.class": "SparkSource", "spark.format": "csv", "spark.path": "/in"}


@dataclass
class World:
    """A dispatcher, and the calls that it has made."""

    started: list[Slot] = field(default_factory=list)
    rows: list[PartRequest | None] = field(default_factory=list)
    looks: list[Callable[[Split | Unread], None]] = field(default_factory=list)
    writes: list[tuple[WriteJob, Callable[[str, bool], None]]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    told: list[RunUpdate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.d = Dispatcher(
            self,
            LIMITS,
            Times(3, 5, 60, 30),
            unfit=lambda ticket: "",
            look_at=self.look_at,
            end_of=lambda pid: "",
        )
        self.d.greet(ME, self)

    def start(self, slot: Slot, data: PartRequest | None, on_end: Callable[[str, str], None]) -> None:
        self.end_job = on_end
        self.rows.append(data)
        self.started.append(slot)

    def cancel(self, slot_id: str) -> None:
        self.cancelled.append(slot_id)

    def look_at(self, task: tuple[str, str, int], data: DataSet, done: Callable[[Split | Unread], None]) -> None:
        self.looks.append(done)

    def write(self, run: str, job: WriteJob, done: Callable[[str, bool], None]) -> None:
        self.writes.append((job, done))

    def cancel_write(self, run: str) -> None:
        self.cancelled.append(run)

    def put(self, update: RunUpdate) -> None:
        self.told.append(update)

    def order(self, uid: str, config: dict[str, str], part: int = 0) -> None:
        ticket = StartTicket(run_uid=uid, worker_cluster="wc", connector="c", connector_config=config)
        ticket.bulk.CopyFrom(Bulk(part=part, data=True))
        if part:
            ticket.task_config.update({PART: "7", SPLIT: "digest"})
        self.d.order(ME, RunOrder(run_uid=uid, start=ticket))

    def attached(self, slot: Slot) -> Slot:
        self.d.attach(SlotGreeting(slot=slot.id, token=slot.token, pid=1))
        return slot

    def mail(self, slot: Slot) -> list[RunOrder]:
        queue = self.d.pool.mail(slot).queue
        return [queue.get_nowait().order for _ in range(queue.qsize())]


def test_a_task_waits_for_what_spark_says_of_its_data_set() -> None:
    world = World()
    world.order("own", CONFIG)
    assert not world.started
    world.looks[0](Split(5, "digest"))
    (order,) = world.mail(world.attached(world.started[0]))
    assert (order.start.task_config[PARTS], order.start.task_config[SPLIT]) == ("5", "digest")


@pytest.mark.parametrize("ticket", [{"plugin": {"folder": "/plugin"}}, {"connector_config": {}}])
def test_for_a_class_that_is_not_ours_none_is_loaded(ticket: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        raise AssertionError(f"{name} is looked for where leases are renewed")

    monkeypatch.setattr("keelman.spark.data_sets.reads.find_connector", load)
    assert wanted(StartTicket(run_uid="r", **ticket)) is None


def test_what_spark_cannot_read_is_the_tasks_to_say() -> None:
    world = World()
    world.order("own", CONFIG)
    world.looks[0](Unread("no such path", lasting=True))
    (order,) = world.mail(world.attached(world.started[0]))
    assert order.start.task_config[PROBLEM] == "no such path"
    assert PASSING not in order.start.task_config


def test_what_spark_cannot_read_now_is_tried_again() -> None:
    world = World()
    world.order("own", CONFIG)
    world.looks[0](Unread("connection refused", lasting=False))
    (order,) = world.mail(world.attached(world.started[0]))
    assert (order.start.task_config[PROBLEM], order.start.task_config[PASSING]) == ("connection refused", "true")


def test_other_options_mean_other_rows_but_not_another_password() -> None:
    data = DataSet("csv", "/data", {"header": "true", "password": "a"})
    assert shape(data) == shape(DataSet("csv", "/data", {"header": "true", "password": "b"}))
    assert shape(data) != shape(DataSet("csv", "/data", {"header": "false", "password": "a"}))
    assert shape(data) != shape(DataSet("csv", "/data", {"header": "true", "password": "a"}, "a int"))


@pytest.mark.parametrize("name", ["no.such.module:X", "json", "json:NoSuch", "unittest.__main__:X", ""])
def test_a_python_source_that_cannot_be_imported_is_named(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"spark\.python\.source"):
        python_source(name)


def test_a_task_that_ends_meanwhile_is_left_alone() -> None:
    world = World()
    world.order("own", CONFIG)
    world.d.order(ME, RunOrder(run_uid="own", drain={}))
    world.looks[0](Split(5, "digest"))
    assert not world.started


def test_a_part_has_a_slot_with_its_rows_that_ends_with_it() -> None:
    world = World()
    world.order("part", CONFIG, part=1)
    slot = world.attached(world.started[0])
    rows = world.rows[0]
    assert rows is not None
    assert (rows.part, rows.split, rows.data.path) == (7, "digest", "/in")
    world.order("other", CONFIG, part=2)
    assert world.started[1].data == "other"
    world.d.update(slot, RunUpdate(run_uid="part", state=states.COPY_RUN_STATE_ENDED, reason="ALL_READ"))
    assert not slot.usable


def test_a_slot_whose_rows_cannot_be_had_fails_its_part_with_sparks_words() -> None:
    world = World()
    world.order("part", CONFIG, part=1)
    world.end_job(world.started[0].id, "the file is torn")
    assert (world.told[-1].state, world.told[-1].message) == (states.COPY_RUN_STATE_FAILED, "the file is torn")
    assert len(world.started) == 1


def test_a_slot_with_rows_is_nobody_elses() -> None:
    slot = Slot("a", ME, "", 0.0, data="one", alone=True)
    assert choose(ME, [slot], LIMITS, Need(data="two")) == NewSlot(alone=True, data="two")
    assert choose(ME, [slot], LIMITS, Need(busy=True)) == NewSlot()
    assert isinstance(choose(ME, [slot] * LIMITS.max_slots, LIMITS, Need(data="two")), Wait)


def test_a_write_is_asked_for_once_and_answered() -> None:
    world = World()
    world.order("sink", {"connector.class": "FileStreamSink"})
    slot = world.attached(world.started[0])
    world.mail(slot)
    job = WriteJob(number=1, config={"secret": "s"})
    for _ in range(2):
        world.d.update(slot, RunUpdate(run_uid="sink", state=states.COPY_RUN_STATE_RUNNING, write=job))
    assert [batch.number for batch, _ in world.writes] == [1]
    assert not any(update.HasField("write") for update in world.told)
    world.writes[0][1]("disk full", False)
    (order,) = world.mail(slot)
    assert (order.written.number, order.written.error) == (1, "disk full")
    world.d.update(slot, RunUpdate(run_uid="sink", state=states.COPY_RUN_STATE_ENDED))
    assert world.cancelled == ["sink"]
