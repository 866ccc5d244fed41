"""The values that a connector's methods may return: documented values are accepted, others are refused by name."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from keelman.connect import contract
from keelman.connect.contract import ReturnCheck
from keelman.connect.converters.logical import DECIMAL
from keelman.connect.expected import WrongAnswer
from keelman.connect.plugin import KeptOffset
from keelman.connect.records import Column, PackedRecords, Repeated, SourceBatch, TopicPartition
from keelman.connect.schema import STRING, Field, Schema, Struct
from keelman.connect.topic_plan import TopicPlan
from keelman.connect.watches import FileWatch
from keelman.connectors.tools.mock import MockReader
from keelman.engine.run import method_in

ROWS = Column(["a", "b"])
PAIR = Schema("struct", fields=(Field("n", Schema("int8")),))
EVERY = [check for check in vars(contract).values() if isinstance(check, ReturnCheck)]
NOTHING_RETURNED = {
    "tend",
    "committed",
    "prepare",
    "write",
    "settle",
    "commit",
    "hand_over",
    "assigned",
    "lost",
    "idle",
}


class Odd:
    """A connector whose methods return this value."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def read(self, *_: object) -> Any:
        return self.answer

    @classmethod
    def of(cls) -> Any:
        return 7


async def later() -> None: ...


def batch(**more: Any) -> SourceBatch:
    return SourceBatch(**{"topic": "t", "values": ROWS, **more})


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (contract.READ, None),
        (contract.READ, batch()),
        (contract.READ, batch(timestamps_ms=Repeated(7, 2))),
        (contract.READ, batch(keys=ROWS, partitions=(0, None), timestamps_ms=[1, None], headers=[(), [("h", b"v")]])),
        (contract.READ, batch(offsets=[({"p": 1}, {"n": 1}), ({"p": 2}, None)], boundary="abort", passed=7)),
        (contract.READ, batch(topic="", values=Column([]), offsets=[({"p": 1}, None)])),
        (contract.READ, batch(values=Column([]), packed=[PackedRecords(b"..", 0, 40)], delivered={0: print})),
        (contract.READ, batch(values=Column([None, 1, "bad"], Schema("int64")))),
        (contract.READ, batch(values=Column(["bad", 1], Schema("int64")))),
        (contract.READ, batch(values=Column([1, 2.5], Schema("double")), keys=Column([b"a", b"b"], STRING, utf8=True))),
        (contract.READ, batch(values=Column(["a", 1], schemas=[STRING, Schema("int8")]))),
        (contract.READ, batch(values=Column([Decimal(1)], Schema("bytes", name=DECIMAL)))),
        (contract.READ, batch(values=Column([Struct(PAIR, {"n": 1})], PAIR), keys=Column([None], Schema("int8")))),
        (contract.PARTITIONS, ()),
        (contract.PARTITIONS, {1: {"p": 1}}.values()),
        (contract.LEFT, 3),
        (contract.LEFT, None),
        (contract.WATCH, FileWatch("f", 0, 0)),
        (contract.TOPIC_PLAN, TopicPlan()),
        (contract.KEPT, {TopicPartition("t", 0): KeptOffset(1, (None,))}),
        (contract.TAKE_OVER, {TopicPartition("t", 0): KeptOffset(1, (None,), "id", 3)}),
        (contract.WRITE, 7),
        (contract.COMMITTED, None),
        (contract.REFRESH_SECONDS, 1),
        (contract.TASK_CONFIGS, [{}, {"a": "b"}]),
    ],
)
def test_what_is_documented_is_legal(answer: ReturnCheck, value: object) -> None:
    assert answer.of(Odd(value).read) is value


@pytest.fixture(scope="module")
def kept_aside() -> Iterator[None]:
    """Freezes present objects, so that garbage collections are quick."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("kept_aside")
@pytest.mark.parametrize("answer", EVERY, ids=lambda value: value.method)
@pytest.mark.parametrize("value", [later, lambda: (item for item in ())], ids=["coroutine", "generator"])
def test_nothing_that_is_yet_to_run_is_an_answer(answer: ReturnCheck, value: Callable[[], Any]) -> None:
    with pytest.raises(WrongAnswer, match=rf"^what Odd.{answer.method} returned is of type (coroutine,|generator;)"):
        answer.of(Odd(value()).read)
    gc.collect()  # a coroutine that is not closed warns, which fails the test


@pytest.mark.parametrize(
    "answer", [check for check in EVERY if check.method not in NOTHING_RETURNED], ids=lambda a: a.method
)
def test_no_answer_takes_anything(answer: ReturnCheck) -> None:
    legal = answer.legal.text.partition(":")[0]
    with pytest.raises(WrongAnswer, match=rf"^what Odd.{answer.method} returned is of type Odd; expected {legal[:9]}"):
        answer.of(Odd(Odd(1)).read)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            "a" * 500,
            r"what Odd.read returned is of type str: 'a{99}; expected a SourceBatch, or None when there is none",
        ),
        (["a", "b"], r"what Odd.read returned is of type list: \['a', 'b'\]; expected a SourceBatch"),
        (batch(topic=None), "topic of what Odd.read returned is None; expected the name of a topic, which may"),
        (
            batch(topic=""),
            "topic of what Odd.read returned is of type str: ''; expected the name of a topic, which may",
        ),
        (batch(values=["a"]), r"values of what Odd.read returned is of type list: \['a'\]; expected a Column whose"),
        (
            batch(values=Column("ab")),
            "values of what Odd.read returned is of type Column; expected a Column whose values",
        ),
        (batch(keys=["a"]), r"keys of .* is of type list: \['a'\]; expected None or a Column whose values"),
        (batch(keys=Column(["a"])), "keys of .* are 1; expected as many as there are values, 2"),
        (batch(values=Column(["a"], schemas=[])), "schemas of the values of .* are 0; expected as many .*, 1"),
        (
            batch(timestamps_ms=7),
            "timestamps_ms of .* is of type int: 7; expected None or a list with a number or None",
        ),
        (batch(timestamps_ms=Repeated("7", 2)), "timestamps_ms of .* expected None or a list with a number or None"),
        (batch(timestamps_ms=["7", "8"]), r"timestamps_ms of .* is of type list: \['7', '8'\]; expected"),
        (batch(partitions=[0]), "partitions of .* are 1; expected as many as there are values, 2"),
        (batch(headers=[("h", b"v"), ("h", b"v")]), "headers of .* expected None or a list with pairs of name and"),
        (
            batch(offsets=5),
            "offsets of .* is of type int: 5; expected a list of pairs, a dict of plain",
        ),
        (batch(offsets={"p": 1}), r"offsets of .* is of type dict: \{'p': 1\}; expected a list of pairs"),
        (batch(offsets=[({"p": 1}, 5)]), r"offsets of .* is of type list: \[\(\{'p': 1\}, 5\)\]; expected a list of"),
        (batch(offsets=[("p", "n", "x")]), r"offsets of .* is of type list: \[\('p', 'n', 'x'\)\]; expected a list of"),
        (
            batch(offsets=[({"p": 1}, {"n": [1]})]),
            r"offsets of .* is of type list: .*'n': \[1\].*; expected a list of pairs",
        ),
        (batch(packed=[b"."]), r"packed of .* is of type list: \[b'.'\]; expected a list of PackedRecords"),
        (batch(boundary="end"), 'boundary of .* is of type str: \'end\'; expected None, "commit" or "abort"'),
        (
            batch(values=Column(["a"], Schema("int64"))),
            "each of the values of what Odd.read returned is of type str: 'a'; "
            "expected a whole number, as its schema of type int64 says",
        ),
        (batch(values=Column([None, 1, 2], STRING)), "each of the values .* of type int: 1; expected a str, as its"),
        (batch(keys=Column(["a", "b"], STRING, utf8=True)), "each of the keys of .* expected bytes, as its column has"),
        (batch(values=Column([{"n": 1}], PAIR)), "each of the values .* expected a Struct, as its schema of type str"),
        (batch(values=Column(["a"], Schema("long"))), "the schema of the values .* expected None or a Schema of type"),
        (batch(values=Column(["a"], "string")), "the schema of the values .* is of type str: 'string'; expected None"),
        (batch(passed="much"), "passed of .* is of type str: 'much'; expected None or a number"),
    ],
)
def test_a_batch_is_looked_at_in_its_parts(value: object, text: str) -> None:
    with pytest.raises(WrongAnswer, match=f"^{text}"):
        contract.READ.of(Odd(value).read)


def test_a_readers_unit_is_looked_at_when_it_is_opened() -> None:
    reader = MockReader.__new__(MockReader)
    assert contract.OPEN_READER.of(lambda: reader) is reader
    reader.lag_unit = "rows"  # type: ignore[assignment]
    with pytest.raises(WrongAnswer, match=r"^lag_unit of what open_reader returned is of .*: 'rows'; expected"):
        contract.OPEN_READER.of(lambda: reader)


def test_a_method_that_does_not_come_back_is_named_and_not_its_judge() -> None:
    results: list[str] = []

    def read() -> None:
        results.append(method_in(sys._getframe()))

    thread = threading.Thread(target=contract.READ.of, args=(read,))
    thread.start()
    thread.join()
    assert ".read (test_contract.py:" in results[0]


def test_who_knows_the_class_says_so() -> None:
    with pytest.raises(WrongAnswer) as caught:
        contract.TEND_AGAIN.of(Odd.of)
    caught.value.connector = "com.acme.Odd"
    assert str(caught.value) == ("com.acme.Odd: what Odd.tend_again returned is of type int: 7; expected True or False")


def test_a_thread_of_a_connectors_own_is_what_a_process_is_noted_to_be_in() -> None:
    noted: list[str] = []
    contract.note_calls(noted.append)
    try:
        contract.note_background("com.acme.SeaTask.poll")
        contract.LEFT.of(lambda: 1)
        contract.note_background("")
        contract.LEFT.of(lambda: 1)
    finally:
        contract.note_calls(lambda _: None)
    assert noted == ["com.acme.SeaTask.poll", "", "left", ""]


def test_a_thread_says_what_it_waits_for_where_its_frames_do_not() -> None:
    with contract.standing("com.acme.SeaTask.stop"):
        assert contract.standing_of(threading.get_ident()) == "com.acme.SeaTask.stop"
    assert contract.standing_of(threading.get_ident()) == ""
