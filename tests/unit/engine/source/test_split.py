"""Parts of a backlog: the option, the distribution of partitions, the plan's records, the tickets of parts."""

import pytest

from keelman.api.copy.v1.ticket_pb2 import Bulk, Limits, StartTicket
from keelman.connect.errors import ConfigValueError
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.records import TopicPartition
from keelman.connectors.mirror.offsets import dealt
from keelman.engine.control import Control
from keelman.engine.source.split import bulk_of, part_ids, plan_offset, plan_partition, planned_parts, plans
from keelman.worker.storage.offset_state import parsed_rows
from keelman.worker.tasks.bulk import part_ticket
from support.copying.orders import CONFIRM


def behind(*counts: int) -> dict[TopicPartition, int]:
    return {TopicPartition("t", number): count for number, count in enumerate(counts)}


def test_bulk_is_off_unless_asked_for() -> None:
    assert bulk_of({}) is None
    assert bulk_of({"keelman.bulk.slots": "1"}) is None
    assert bulk_of({"keelman.bulk.slots": "4"}) == Bulk(slots=4, least=1_000_000)
    assert bulk_of({"keelman.bulk.slots": " 2 ", "keelman.bulk.min.records": "10"}) == Bulk(slots=2, least=10)


@pytest.mark.parametrize(("key", "value"), [("slots", "0"), ("slots", "65"), ("slots", "two"), ("min.records", "-1")])
def test_illegal_values_are_named(key: str, value: str) -> None:
    with pytest.raises(ConfigValueError, match=f"keelman.bulk.{key}"):
        bulk_of({"keelman.bulk.slots": "2", f"keelman.bulk.{key}": value})


def test_the_largest_backlogs_are_apart_and_every_partition_is_in_one_part() -> None:
    counts = behind(10, 500, 0, 400, 100, 0)
    parts = dealt(counts, slots=2, least=1000)
    assert sorted(table for part in parts for table in part) == sorted(counts)
    loads = [sum(counts[table] for table in part) for part in parts]
    assert sorted(loads) == [500, 510]


@pytest.mark.parametrize(
    ("counts", "slots"), [((500, 499), 2), ((2000, 0, 0), 4), ((), 4), ((0, 0), 4), ((2000, 2000), 1)]
)
def test_what_is_not_worth_it_stays_whole(counts: tuple[int, ...], slots: int) -> None:
    assert dealt(behind(*counts), slots=slots, least=1000) == []


def test_there_are_no_more_parts_than_partitions_with_a_backlog() -> None:
    assert len(dealt(behind(1000, 1000, 1000, 0), slots=8, least=1)) == 3


def test_a_plan_is_read_back_and_shown_to_nobody() -> None:
    table = CommittedOffsets("c")
    rows = [table.record(plan_partition(task), plan_offset(parts)) for task, parts in ((0, 3), (12, 2))]
    assert rows[0] == (b'["c",{"keelman.bulk":"0"}]', b'{"parts":3}')
    own = table.record({"topic": "t", "partition": 0}, {"offset": 7})
    assert plans("c", [*rows, own]) == {0: 3, 12: 2}
    assert plans("other", rows) == {}
    assert plans("c", [rows[0], (rows[0][0], None)]) == {}
    shown = [(key, value) for key, value in [*rows, own] if value is not None]
    assert parsed_rows(shown) == [({"topic": "t", "partition": 0}, {"offset": 7})]


@pytest.mark.parametrize("offset", [None, {}, {"parts": 1}, {"parts": True}, {"parts": "2"}, {"parts": 65}])
def test_what_is_no_plan_names_no_parts(offset: dict[str, object] | None) -> None:
    assert planned_parts(offset) == 0


def test_the_ids_of_parts_are_beside_the_tasks() -> None:
    assert part_ids("g-c-0", 3) == ["g-c-0-b1", "g-c-0-b2"]


def test_a_parts_ticket_is_its_tasks_with_another_producer_and_its_share() -> None:
    ticket = StartTicket(
        run_uid="u",
        connector="c",
        task=1,
        transactional_id="g-c-1",
        task_config={"a": "1", "b": "1"},
        limits=Limits(records_per_second=90),
        bulk=Bulk(slots=4, least=10),
    )
    part = part_ticket(ticket, 2, 3, {"b": "2"})
    assert (part.transactional_id, dict(part.task_config)) == ("g-c-1-b2", {"a": "1", "b": "2"})
    assert (part.limits.records_per_second, part.bulk) == (30, Bulk(part=2))
    assert ticket.task_config["b"] == "1"


def test_the_second_confirmation_says_that_the_task_is_whole() -> None:
    control = Control()
    control.apply(CONFIRM)
    assert not control.whole
    control.apply(CONFIRM)
    assert control.whole
