"""Checks the results of a connector's methods right after the call, so that an error names the method, its result and
the legal results. Also notes which method is being called."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ParamSpec, TypeVar

from keelman.connect.config.definition import ConfigDef
from keelman.connect.converters.logical import LOGICAL
from keelman.connect.errors import ConfigValueError
from keelman.connect.expected import Expected, WrongAnswer
from keelman.connect.plugin import LEAST_REFRESH_SECONDS, KeptOffset, Reader, Writer
from keelman.connect.records import Column, PackedRecords, RawOffset, Repeated, SourceBatch, TopicPartition
from keelman.connect.schema import INTEGER_RANGES, TYPES, Schema, Struct
from keelman.connect.tasks.data_set import DataSink
from keelman.connect.tasks.own_metric import LEGAL, is_legal
from keelman.connect.topic_plan import TopicPlan
from keelman.connect.watches import FileWatch, TopicWatch, VbucketWatch

P = ParamSpec("P")
T = TypeVar("T")
_note: Callable[[str], None] | None = None


def note_calls(note: Callable[[str], None]) -> None:
    """Calls `note` from now on with the name of each connector method that this process calls, e.g. `SeaReader.read`,
    and with an empty text after its return: so that the place is known if the process dies."""
    global _note  # noqa: PLW0603  one a process, which is what it is about
    _note = note


_background: dict[int, str] = {}


def note_background(method: str) -> None:
    """Does the same for a connector's own threads: the method that was begun last counts, not the thread that waits for
    it. `method` is empty after its return."""
    _background.pop(threading.get_ident(), None)
    if method:
        _background[threading.get_ident()] = method
    if _note is not None:
        _note(under_way())


def under_way() -> str:
    """Returns the connector method that one of its own threads began last and is still in; else an empty text."""
    return next(reversed(list(_background.values())), "")


def background_calls() -> list[str]:
    """Returns the methods that the connector's own threads are in."""
    return list(_background.values())


_standing: dict[int, str] = {}


@contextmanager
def standing(method: str) -> Iterator[None]:
    """Wraps a thread's wait for a method without a Python frame, e.g. a Java method."""
    me = threading.get_ident()
    _standing[me] = method
    try:
        yield
    finally:
        _standing.pop(me, None)


def standing_of(thread: int) -> str:
    """Returns the method that a thread has noted to wait for; empty without a note."""
    return _standing.get(thread, "")


@dataclass(frozen=True, slots=True)
class ReturnCheck:
    """Checks one method's result; `parts` are attributes of the result to check, too, unless they equal their value in
    `unset`, and `whole` checks how they fit together."""

    method: str
    legal: Expected
    parts: Mapping[str, Expected] = field(default_factory=dict)
    whole: Callable[[str, Any], None] = lambda _what, _found: None
    unset: Mapping[str, Any] = field(default_factory=dict)

    def of(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the method and returns its result. Raises WrongAnswer, and the method's errors."""
        result = (
            method(*args, **kwargs) if _note is None or _background else self._noted(_note, method, *args, **kwargs)
        )
        if not self.legal.fits(result):
            self.legal.expect(f"what {self.named(method)} returned", result)
        if result is not None and self.parts:
            what, unset = f"what {self.named(method)} returned", self.unset
            for name, legal in self.parts.items():
                value = getattr(result, name)
                if (name not in unset or value is not unset[name]) and not legal.fits(value):
                    legal.expect(f"{name} of {what}", value)
            self.whole(what, result)
        return result

    def _noted(self, note: Callable[[str], None], method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        note(self.named(method))
        try:
            return method(*args, **kwargs)
        finally:
            note(under_way())  # another thread's method may have begun meanwhile

    def named(self, method: Callable[..., Any]) -> str:
        """Returns the method's name with its class, e.g. `SeaReader.read`."""
        owner = getattr(method, "__self__", None)
        if owner is None:
            return self.method
        return f"{(owner if isinstance(owner, type) else type(owner)).__qualname__}.{self.method}"


def _several(value: object) -> bool:
    return type(value) in _USUAL or (
        isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray | Mapping)
    )


def _in_order(value: object) -> bool:
    return type(value) in _USUAL or (isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray))


def _none_or(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _all(fits: Callable[[Any], bool], members: Iterable[Any]) -> bool:
    return all(map(fits, members))


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _whole_number(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _any_number(value: object) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, bool)


def _whole_numbers(value: Any) -> bool:
    """Checks a batch's numbers, which may be many: one by one only where the set of types does not decide."""
    some = value[:1] if isinstance(value, Repeated) else value
    return _in_order(value) and (set(map(type, some)) <= {int, type(None)} or _all(_none_or(_whole_number), some))


def _pairs(value: Any) -> bool:
    return _several(value) and _all(lambda pair: isinstance(pair, tuple | list) and len(pair) == 2, value)


def _flat(value: Any) -> bool:
    if type(value) is dict and set(map(type, value)) <= _TEXT and set(map(type, value.values())) <= _PLAIN_TYPES:
        return True
    return isinstance(value, Mapping) and _all(_is(str), value) and _all(_is(*_PLAIN), value.values())


def _offsets(value: Any) -> bool:
    return _pairs(value) and _all(lambda pair: _flat(pair[0]) and (pair[1] is None or _flat(pair[1])), value)


def _column(value: Any) -> bool:
    return isinstance(value, Column) and _in_order(value.values)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and _all(_is(str), [*value, *value.values()])


def _done(value: object) -> bool:
    return not (inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value))


def _one_a_record(what: str, batch: SourceBatch) -> None:
    """Raises WrongAnswer unless records have a topic and every per-record list has as many entries as values."""
    records = len(batch.values.values)
    if (records or batch.packed) and not batch.topic:
        _TOPIC.expect(f"topic of {what}", batch.topic)
    each: list[tuple[str, Sequence[Any] | None]] = [
        ("schemas of the values", batch.values.schemas),
        ("keys", None if batch.keys is None else batch.keys.values),
        ("schemas of the keys", None if batch.keys is None else batch.keys.schemas),
        ("partitions", batch.partitions),
        ("timestamps_ms", batch.timestamps_ms),
        ("headers", batch.headers),
    ]
    for name, entries in each:
        if entries is not None and len(entries) != records:
            raise WrongAnswer(f"{name} of {what} are {len(entries)}; expected as many as there are values, {records}")
    if not batch.raw:
        _as_its_schema(f"values of {what}", batch.values)
        _as_its_schema(f"keys of {what}", batch.keys or Column([]))


def _as_its_schema(what: str, column: Column) -> None:
    """Raises WrongAnswer where no value fits its schema.

    The first value that fits suffices for a batch: an unfit value among fitting ones is a bad record, and its
    converter refuses it.
    """
    first = next((place for place, value in enumerate(column.values) if value is not None), None)
    if first is None:
        return
    _SCHEMA.expect(f"the schema of the {what}", column.schema_of(first))
    legal = _legal(column, first)
    if legal is not None and not any(_fits(column, place) for place in range(first, len(column.values))):
        legal.expect(f"each of the {what}", column.values[first])


def _fits(column: Column, place: int) -> bool:
    legal, value = _legal(column, place), column.values[place]
    return value is not None and (legal is None or legal.fits(value))


def _legal(column: Column, place: int) -> Expected | None:
    """Returns the legal form of one value; None where anything is legal."""
    schema = column.schema_of(place)
    if column.utf8:
        return _UTF8
    return None if not isinstance(schema, Schema) or schema.name in LOGICAL else _OF_TYPE.get(schema.type)


_PLAIN = (str, int, float, bool, type(None))
_USUAL = (list, tuple)  # a check against an abstract class takes several calls
_PLAIN_TYPES, _TEXT = frozenset(_PLAIN), frozenset({str})
_TRUTH = Expected("True or False", _is(bool))
_TOPIC = Expected("the name of a topic, which may be empty where there are no records", lambda value: value != "")
_DONE = Expected("nothing, with all done that it is called for", _done)
_SCHEMA = Expected(
    f"None or a Schema of type {', '.join(sorted(TYPES))}",
    lambda value: value is None or (isinstance(value, Schema) and value.type in TYPES),
)
_UTF8 = Expected("bytes, as its column has utf8=True", _is(bytes, bytearray, memoryview))
_OF_TYPE = {
    kind: Expected(f"{words}, as its schema of type {kind} says", fits)
    for kind, words, fits in (
        *((kind, "a whole number", _whole_number) for kind in INTEGER_RANGES),
        *((kind, "a number", _any_number) for kind in ("float", "double")),
        ("boolean", "True or False", _is(bool)),
        ("bytes", "bytes", _is(bytes, bytearray, memoryview)),
        ("string", "a str", _is(str)),
        ("array", "a list", _is(list, tuple)),
        ("map", "a dict", _is(dict)),
        ("struct", "a Struct", _is(Struct)),
    )
}
_BATCH = {
    "topic": Expected(_TOPIC.text, _is(str)),
    "values": Expected("a Column whose values are a list", _column),
    "keys": Expected("None or a Column whose values are a list", _none_or(_column)),
    "partitions": Expected("None or a list with a number or None a record", _none_or(_whole_numbers)),
    "timestamps_ms": Expected("None or a list with a number or None a record", _none_or(_whole_numbers)),
    "headers": Expected(
        "None or a list with pairs of name and bytes for each record",
        _none_or(lambda value: _in_order(value) and _all(_none_or(_pairs), value)),
    ),
    "offsets": Expected(
        "a list of pairs, a dict of plain values for the source partition and one, or None, for its offset", _offsets
    ),
    "packed": Expected("a list of PackedRecords", lambda value: _several(value) and _all(_is(PackedRecords), value)),
    "boundary": Expected('None, "commit" or "abort"', lambda value: value in (None, "commit", "abort")),
    "delivered": Expected("None or a dict of functions by index", _none_or(_is(Mapping))),
    "position": Expected("None or a function of an index", _none_or(callable)),
    "passed": Expected("None or a number", _none_or(_whole_number)),
    "raw_offsets": Expected("a list of RawOffset", lambda value: _several(value) and _all(_is(RawOffset), value)),
    "more": _TRUTH,
    "failed": Expected("a dict of FailedRecord by index", _is(Mapping)),
}

# Class methods of a connector, and its class attributes.
CONFIG_DEF = ReturnCheck("config_def", Expected("a ConfigDef", _is(ConfigDef)))
VALIDATE = ReturnCheck(
    "validate",
    Expected("a list of ConfigValueError", lambda value: _several(value) and _all(_is(ConfigValueError), value)),
)
TASK_CONFIGS = ReturnCheck(
    "task_configs",
    Expected("a list with a dict of texts for each task", lambda value: _in_order(value) and _all(_texts, value)),
)
SUPPORTS_EXACTLY_ONCE = ReturnCheck("supports_exactly_once", _TRUTH)
TRANSACTION_BOUNDARY = ReturnCheck("transaction_boundary_connector", _TRUTH)
TEND = ReturnCheck("tend", _DONE)
TEND_AGAIN = ReturnCheck("tend_again", _TRUTH)
REFRESH_SECONDS = ReturnCheck(
    "refresh_seconds",
    Expected(
        f"None, or seconds, {LEAST_REFRESH_SECONDS:g} or more",
        _none_or(lambda value: _number(value) and LEAST_REFRESH_SECONDS <= value < math.inf),
    ),
)
ALTER_OFFSETS = ReturnCheck("alter_offsets", _TRUTH)
SPLIT = ReturnCheck(
    "split",
    Expected("a list with a dict of texts for each part", lambda value: _in_order(value) and _all(_texts, value)),
)
DATA_SINK = ReturnCheck("data_sink", Expected("None or a DataSink", _none_or(_is(DataSink))))
OPEN_READER = ReturnCheck(
    "open_reader",
    Expected("a Reader", _is(Reader)),
    {"lag_unit": Expected('"bytes" or "records"', lambda value: value in ("bytes", "records"))},
)
OPEN_WRITER = ReturnCheck(
    "open_writer",
    Expected("a Writer", _is(Writer)),
    {"zombie_seconds": Expected("seconds, 0 or more", lambda value: _number(value) and value >= 0)},
)

# Methods of a reader.
PARTITIONS = ReturnCheck(
    "partitions",
    Expected(
        "a list with a dict of plain values for each source partition",
        lambda value: _several(value) and _all(_flat, value),
    ),
)
READ = ReturnCheck(
    "read",
    Expected("a SourceBatch, or None when there is none now", _none_or(_is(SourceBatch))),
    _BATCH,
    _one_a_record,
    {field.name: field.default for field in fields(SourceBatch) if field.default is not MISSING},
)
LEFT = ReturnCheck("left", Expected("None or a number", _none_or(_whole_number)))
GLANCE = ReturnCheck("glance", Expected("True, False or None", _none_or(_is(bool))))
WATCH = ReturnCheck(
    "watch", Expected("None, a FileWatch or a TopicWatch", _none_or(_is(FileWatch, TopicWatch, VbucketWatch)))
)
CAUGHT_UP = ReturnCheck("caught_up", _TRUTH)
FINISHED = ReturnCheck("finished", _TRUTH)
WIND_UP = ReturnCheck("wind_up", _TRUTH)
TOPIC_PLAN = ReturnCheck("topic_plan", Expected("None or a TopicPlan", _none_or(_is(TopicPlan))))
COMMITTED = ReturnCheck("committed", _DONE)
METRICS = ReturnCheck(
    "metrics",
    Expected(f"a list of OwnMetric, each with {LEGAL}", lambda value: _several(value) and _all(is_legal, value)),
)
WAITS_FOR = ReturnCheck("waits_for", Expected("a text, empty when it can read", _none_or(_is(str))))
SET_ASIDE = ReturnCheck("set_aside", _TRUTH)
ASIDE = ReturnCheck("aside", Expected("a dict of numbers", _is(Mapping)))

# Methods of a writer.
_KEPT = Expected(
    "a dict of KeptOffset by TopicPartition",
    lambda value: (
        isinstance(value, Mapping) and _all(_is(TopicPartition), value) and _all(_is(KeptOffset), value.values())
    ),
)
KEPT = ReturnCheck("kept", _KEPT)
TAKE_OVER = ReturnCheck("take_over", _KEPT)
HAND_OVER = ReturnCheck("hand_over", _DONE)
ASSIGNED = ReturnCheck("assigned", _DONE)
LOST = ReturnCheck("lost", _DONE)
IDLE = ReturnCheck("idle", _DONE)
COMMITTABLE = ReturnCheck(
    "committable",
    Expected(
        "None, or a dict of offsets by TopicPartition",
        _none_or(
            lambda value: (
                isinstance(value, Mapping) and _all(_is(TopicPartition), value) and _all(_whole_number, value.values())
            )
        ),
    ),
)
PREPARE = ReturnCheck("prepare", _DONE)
WRITE = ReturnCheck("write", _DONE)
SETTLE = ReturnCheck("settle", _DONE)
COMMIT = ReturnCheck("commit", _DONE)
