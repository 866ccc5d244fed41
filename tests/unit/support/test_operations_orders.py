"""The oracle of `make operations` against histories written by hand: only the impossible ones are found."""

from pathlib import Path
from typing import Any

import pytest

from chaos.operations.answers import KINDS, excused, sure
from chaos.operations.history import NEVER, Operation, write
from chaos.operations.kept import END
from chaos.operations.legal_orders import Undecided, contradiction

NAME = "x"
OLD, NEW = {"connector.class": "C", "tag": "1"}, {"connector.class": "C", "tag": "2"}
ROW = {"partition": {"filename": "f"}, "offset": {"position": 10}}


def told(config: dict[str, str]) -> dict[str, str]:
    return {**config, "name": NAME}


def one(  # noqa: PLR0917
    kind: str, begun: float, ended: float, status: int, answer: Any = None, body: Any = None
) -> Operation:
    return Operation(kind, NAME, body, begun, ended, status, answer)


def create(begun: float, ended: float, config: dict[str, str], status: int = 201, **more: str) -> Operation:
    answer = {"message": "Connector x already exists"} if status == 409 else None
    return one("create", begun, ended, status, answer, {"name": NAME, "config": config, **more})


def put(begun: float, ended: float, config: dict[str, str], status: int = 200) -> Operation:
    return one("put", begun, ended, status, None, config)


def get(begun: float, ended: float, config: dict[str, str]) -> Operation:
    return one("config", begun, ended, 200, told(config))


def end(config: dict[str, str] | None, target: str = "STARTED", topics: tuple[str, ...] = ()) -> Operation:
    stored = {"config": config and told(config), "target": target, "topics": topics}
    return one(END, 100, 100, 200, stored)


BEGUN = create(0, 1, OLD)
DELETED = one("delete", 2, 3, 204)
IMPOSSIBLE = {
    "a lost update": [BEGUN, put(2, 3, NEW), end(OLD)],
    "a lost update under another": [BEGUN, put(2, 3, NEW), put(2, 3, {**NEW, "tag": "3"}), end(OLD)],
    "a stale read": [BEGUN, put(2, 3, NEW), get(4, 5, OLD)],
    "a read that goes back": [BEGUN, put(2, 9, NEW), get(3, 4, NEW), get(5, 6, OLD)],
    "a stale list": [BEGUN, DELETED, Operation("list", "", None, 4, 5, 200, [NAME])],
    "a stale list with infos": [
        BEGUN,
        put(2, 3, NEW),
        Operation("expand", "", None, 4, 5, 200, {NAME: {"info": {"config": told(OLD)}}}),
    ],
    "paused after it was made again": [
        *(BEGUN, one("pause", 1, 2, 202), DELETED, create(4, 5, NEW)),
        end(NEW, "PAUSED"),
    ],
    "a delayed pause that was answered": [BEGUN, one("pause", 2, 3, 202), one("resume", 4, 5, 202), end(OLD, "PAUSED")],
    "a delete undone": [BEGUN, DELETED, end(OLD)],
    "made twice": [BEGUN, create(2, 3, NEW), end(NEW)],
    "refused though it was not there": [BEGUN, DELETED, create(4, 5, NEW, 409), end(None)],
    "found though it was not there": [one("pause", 0, 1, 202), end(None)],
    "unknown though it was there": [BEGUN, one("restart", 2, 3, 404, {"message": "Unknown connector: x"}), end(OLD)],
    "not found though it was there": [BEGUN, one("tasks", 2, 3, 404), end(OLD)],
    "replaced what was not there": [put(0, 1, NEW, 200), end(NEW)],
    "a patch of an old self": [
        *(BEGUN, put(2, 3, NEW)),
        one("patch", 4, 5, 200, {"config": told({**OLD, "a": "b"})}, {"a": "b"}),
    ],
    "altered offsets lost": [
        create(0, 1, OLD, initial_state="STOPPED"),
        one("alter offsets", 2, 3, 200, None, {"offsets": [ROW]}),
        one("offsets", 4, 5, 200, {"offsets": []}),
    ],
    "offsets altered while it runs": [BEGUN, one("alter offsets", 2, 3, 200, None, {"offsets": [ROW]})],
    "a topic of its former self": [
        *(create(0, 1, {**OLD, "topic": "a"}), DELETED, create(4, 5, {**NEW, "topic": "b"})),
        end({**NEW, "topic": "b"}, topics=("a", "b")),
    ],
    "done twice": [  # the lost answer's pause explains either, not both
        *(BEGUN, one("pause", 2, NEVER, 0), one("resume", 4, 5, 202), DELETED),
        *(create(6, 7, NEW), end(NEW, "STOPPED")),
    ],
}
POSSIBLE = {
    "nothing": [end(None)],
    "one after another": [BEGUN, get(1.5, 1.6, OLD), put(2, 3, NEW), get(4, 5, NEW), end(NEW)],
    "two writes at once, the one last": [BEGUN, put(2, 5, NEW), put(3, 4, OLD), end(NEW)],
    "two writes at once, the other last": [BEGUN, put(2, 5, NEW), put(3, 4, OLD), end(OLD)],
    "read during a write, before": [BEGUN, put(2, 5, NEW), get(3, 4, OLD), end(NEW)],
    "read during a write, after": [BEGUN, put(2, 5, NEW), get(3, 4, NEW), end(NEW)],
    "a lost answer, done": [BEGUN, put(2, 3, NEW, 0), get(4, 5, NEW), end(NEW)],
    "a lost answer, not done": [BEGUN, put(2, 3, NEW, 0), get(4, 5, OLD), end(OLD)],
    "a lost answer, done late": [BEGUN, put(2, 3, NEW, 0), get(4, 5, OLD), end(NEW)],
    "an error, done": [BEGUN, put(2, 3, NEW, 500), end(NEW)],
    "a lost delete, made again": [BEGUN, one("delete", 2, 3, 0), create(4, 5, NEW), end(NEW)],
    "a lost create, refused again": [create(0, 1, OLD, 0), create(2, 3, NEW, 409), end(OLD)],
    "a lost pause, after it was made again": [
        *(BEGUN, one("pause", 1, 2, 0), DELETED, create(4, 5, NEW)),
        end(NEW, "PAUSED"),
    ],
    "a lost read": [BEGUN, one("config", 2, 3, 0), end(OLD)],
    "made paused": [create(0, 1, OLD, initial_state="PAUSED"), end(OLD, "PAUSED")],
    "put keeps a pause": [BEGUN, one("pause", 2, 3, 202), put(4, 5, NEW), end(NEW, "PAUSED")],
    "a patch takes out": [
        create(0, 1, {**OLD, "a": "b"}),
        one("patch", 2, 3, 200, {"config": told(OLD)}, {"a": None}),
        end(OLD),
    ],
    "altered offsets": [
        create(0, 1, OLD, initial_state="STOPPED"),
        one("alter offsets", 2, 3, 200, None, {"offsets": [ROW]}),
        one("stop", 3, 4, 204),
        one("offsets", 4, 5, 200, {"offsets": [ROW]}),
    ],
    "altered offsets, run since": [
        create(0, 1, OLD, initial_state="STOPPED"),
        one("alter offsets", 2, 3, 200, None, {"offsets": [ROW]}),
        one("resume", 3, 4, 202),
        one("stop", 4, 5, 204),
        one("offsets", 6, 7, 200, {"offsets": []}),
    ],
    "a task that is not there": [BEGUN, one("restart task", 2, 3, 404, {"message": "Unknown task: x-0"}), end(OLD)],
    "all topics since it was made": [
        *(create(0, 1, {**OLD, "topic": "a"}), put(2, 3, {**NEW, "topic": "b"})),
        end({**NEW, "topic": "b"}, topics=("a", "b")),
    ],
    "of another connector": [Operation("create", "y", {"name": "y", "config": OLD}, 0, 1, 201), end(None)],
}


@pytest.mark.parametrize("history", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_is_found(history: list[Operation]) -> None:
    actual_contradiction = contradiction(history, NAME)
    assert actual_contradiction is not None
    assert str(actual_contradiction).startswith(f"no order explains {actual_contradiction.operation}")
    assert all(str(write) in str(actual_contradiction) for write in actual_contradiction.writes)


@pytest.mark.parametrize("history", POSSIBLE.values(), ids=POSSIBLE)
def test_what_may_be_is_not(history: list[Operation]) -> None:
    assert contradiction(history, NAME) is None


def test_too_many_orders_are_undecided() -> None:
    patches = [one("patch", 2, 3, 0, None, {f"k{n}": "v"}) for n in range(24)]
    with pytest.raises(Undecided, match="more than 100 orders of what was under way with 100"):
        contradiction([BEGUN, *patches, end(None)], NAME, most=100)


@pytest.mark.parametrize("kind", KINDS)
def test_only_answers_of_the_table_are_sure(kind: str) -> None:
    statuses = KINDS[kind].statuses - ({409} if kind == "create" else set())
    present_statuses = {status for status in range(600) if sure(one(kind, 0, 1, status))}
    assert present_statuses == statuses


@pytest.mark.parametrize(
    ("status", "message", "disturbed", "may_be"),
    [
        (0, "", True, True),
        (0, "", False, False),
        (503, "The worker is starting", True, True),
        (503, "The worker is starting", False, False),
        (500, "'NoneType' object has no attribute 'x'", True, False),
        (409, "a rebalance is in process", True, False),
    ],
)
def test_other_answers_are_excused_by_faults_alone(status: int, message: str, disturbed: bool, may_be: bool) -> None:
    assert excused(one("put", 0, 1, status, {"message": message}), disturbed=disturbed) == may_be


@pytest.mark.parametrize(
    ("status", "message"),
    [(409, "x was changed while its offsets were"), (500, "its tasks haven't stopped completely yet")],
)
def test_offsets_may_be_refused(status: int, message: str) -> None:
    refused = one("alter offsets", 0, 1, status, {"message": message})
    assert excused(refused, disturbed=False)
    assert not excused(one("alter offsets", 0, 1, status, {"message": "other"}), disturbed=False)
    assert not sure(refused)


def test_a_history_is_kept_in_its_order(tmp_path: Path) -> None:
    write(tmp_path / "a" / "h.jsonl", [end(OLD), BEGUN])
    first, last = (tmp_path / "a" / "h.jsonl").read_text().splitlines()
    assert '"kind": "create"' in first
    assert '"kind": "end"' in last
