"""A chain gives the same result whether a batch goes through it by columns or record by record."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

import pytest

from keelman.connect.converters.json_data import schema_json
from keelman.connect.converters.logical import TIMESTAMP, TIMESTAMP_SCHEMA, moment, number_of
from keelman.connect.records import Column, Origin, Repeated, SinkBatch, SourceBatch
from keelman.connect.schema import Field, Schema, Struct
from keelman.engine.sink.conversion import SinkConversion
from keelman.engine.source.conversion import SourceConversion

SEEDS, TURNS = 4, 150
JSON = "org.apache.kafka.connect.json.JsonConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms."
FIELDS = ("a", "b", "c", "in", "at", "x", 'ü"%')
TYPES = ("int8", "int32", "int64", "float32", "float64", "boolean", "string")
TEXTS = ("", "12", "1.5", "true", "2020-01-02 03:04:05", 'q"\\', "\U0001f600", "two\nlines", "ü%s", "x" * 30)
NUMBERS = (0, 7, -200, 1 << 31, -(1 << 63), 1_700_000_000_123, 0.5, 1e7, 1e-4, 100.0, -0.0, float("nan"))
MILLISECONDS = (0, 1_700_000_000_123, 86_399_999, -1)
INNER = Schema("struct", fields=(Field("x", Schema("string")), Field("y", Schema("int32", optional=True, default=7))))
FLAT = Schema(
    "struct",
    name="flat",
    fields=(
        Field("a", Schema("string", optional=True)),
        Field("b", Schema("int32")),
        Field("c", Schema("double", optional=True, default=2.5)),
        Field("at", TIMESTAMP_SCHEMA),
    ),
)
NESTED = Schema(
    "struct",
    optional=True,
    fields=(
        Field("a", Schema("array", value=Schema("string", optional=True))),
        Field("in", INNER),
        Field("b", Schema("boolean")),
        Field("c", Schema("map", optional=True, key=Schema("string"), value=Schema("int64"))),
    ),
)
PREDICATES = {
    "predicates": "p,q,r",
    "predicates.p.type": "RecordIsTombstone",
    "predicates.q.type": "HasHeaderKey",
    "predicates.q.name": "h",
    "predicates.r.type": "TopicNameMatches",
    "predicates.r.pattern": "t.*",
}
HEADERS = (None, (("h", b"1"), ("i", None)))


class Draws(Random):
    """A random value, the same for the same seed."""

    def word(self) -> str:
        return self.choice((*TEXTS, "".join(self.choices(string.printable, k=4))))

    def scalar(self) -> Any:
        return self.choice((None, self.word(), self.word(), self.choice(NUMBERS), self.random(), True, False))

    def tree(self, depth: int = 2) -> Any:
        kind = self.randrange(6 if depth else 4)
        if kind < 4:
            return self.scalar()
        if kind == 4:
            return [self.tree(depth - 1) for _ in range(self.randrange(3))]
        return {self.choice(FIELDS): self.tree(depth - 1) for _ in range(self.randrange(4))}

    def alike(self) -> Any:
        """A map whose keys are mostly those of others."""
        return {"a": self.word(), "b": self.choice(NUMBERS), "c": self.choice((None, True)), "in": {"x": self.word()}}

    def flat(self) -> Any:
        moments = moment(self.choice(MILLISECONDS))
        low, real = self.choice((5, -5, (1 << 31) - 1, 1 << 31)), self.choice((None, 2.5, 1e9, 0.125))
        return Struct(FLAT, {"a": self.choice((None, self.word())), "b": low, "c": real, "at": moments})

    def nested(self) -> Any:
        if not self.randrange(6):
            return None
        inner = Struct(INNER, {"x": self.word(), "y": self.choice((None, 3))})
        counts = None if self.random() < 0.5 else {self.choice(FIELDS): 1, "z": 2}
        texts = [self.choice((None, self.word())) for _ in range(self.randrange(3))]
        return Struct(NESTED, {"a": texts, "in": inner, "b": True, "c": counts})

    def data(self, kind: int) -> tuple[Schema | None, Any]:
        results: tuple[Callable[[], tuple[Schema | None, Any]], ...] = (
            lambda: (None, self.alike()),
            lambda: (FLAT, self.flat()),
            lambda: (NESTED, self.nested()),
            lambda: (None, self.tree()),
            lambda: (Schema("string", optional=True), self.choice((None, self.word()))),
        )
        return results[kind]()

    def batch(self) -> list[tuple[Schema | None, Any]]:
        """Records that are mostly of one type."""
        kind, mixed = self.randrange(5), self.random() < 0.3
        return [self.data(self.randrange(5) if mixed else kind) for _ in range(self.randint(1, 8))]

    def step(self) -> dict[str, str]:
        """A transform with its keys, perhaps bound to a predicate."""
        field, other, part = self.choice(FIELDS), self.choice(FIELDS), self.choice(("Key", "Value", "Value"))
        kinds, defaults = self.choices(TYPES, k=2), {"replace.null.with.default": self.choice(("true", "false"))}
        name, config = self.choice(
            (
                ("Cast$", {"spec": f"{field}:{kinds[0]},{other}:{kinds[1]}", **defaults}),
                ("Cast$", {"spec": kinds[0]}),
                ("DropHeaders", {"headers": "h"}),
                ("ExtractField$", {"field": field, **defaults}),
                ("ExtractField$", {"field": "in.x", "field.syntax.version": "V2"}),
                ("Filter", {}),
                ("Flatten$", {"delimiter": self.choice((".", ""))}),
                ("HeaderFrom$", {"fields": field, "headers": "h", "operation": self.choice(("move", "copy"))}),
                ("HoistField$", {"field": field}),
                ("InsertField$", {"topic.field": field, "timestamp.field": self.choice(("at", "time!")), **defaults}),
                ("InsertField$", {"offset.field": field}),
                ("InsertField$", {"static.field": field, "static.value": self.word(), "partition.field": "part?"}),
                ("InsertHeader", {"header": "h", "value.literal": self.choice(("[1]", "x"))}),
                ("MaskField$", {"fields": f"{field},{other}", **defaults}),
                ("MaskField$", {"fields": field, "replacement": self.choice(("7", "text"))}),
                ("RegexRouter", {"regex": "t(.*)", "replacement": "$1u"}),
                ("ReplaceField$", {"exclude": field, "renames": f"{other}:{self.choice(FIELDS)}", **defaults}),
                ("ReplaceField$", {"include": f"{field},{other}"}),
                ("SetSchemaMetadata$", {"schema.name": "new", **defaults}),
                ("TimestampConverter$", {"field": self.choice(("", "at", "b")), **self.form(), **defaults}),
                ("TimestampRouter", {"timestamp.format": self.choice(("yyyyMMdd", "yyyy-MM-dd'T'HH:mm:ss.SSS", "E"))}),
                ("ValueToKey", {"fields": f"{field},{other}", **defaults}),
            )
        )
        bound = {"predicate": self.choice("pqr"), "negate": self.choice(("true", "false"))}
        own = {"type": TRANSFORMS + (f"{name}{part}" if name.endswith("$") else name), **config}
        return own if self.random() < 0.6 else own | bound

    def form(self) -> dict[str, str]:
        return {
            "target.type": self.choice(("string", "unix", "Date", "Time", "Timestamp")),
            "format": self.choice(("yyyy-MM-dd HH:mm:ss", "dd.MM.yyyy")),
        }

    def config(self, keys: tuple[str, ...]) -> dict[str, str]:
        """A connector's configuration."""
        steps = [self.step() for _ in range(self.randint(1, 3))]
        config = {"transforms": ",".join(f"s{n}" for n in range(len(steps))), **PREDICATES}
        config |= {f"transforms.s{n}.{name}": value for n, own in enumerate(steps) for name, value in own.items()}
        enveloped = self.choice(("true", "false"))
        config |= {f"{role}.converter.schemas.enable": enveloped for role in ("key", "value")}
        return config | {"key.converter": self.choice(keys), "value.converter": self.choice((TEXT, JSON, JSON))}


def outcome(show: Callable[[Any], Any], work: Callable[..., Any], *values: Any) -> Any:
    """The result of a call; of an error, only that it was refused."""
    try:
        return show(work(*values))
    except Exception:
        return "refused"


def sent(results: Iterable[Any]) -> Any:
    """The payloads for Kafka."""
    return [
        (
            item.topic,
            values,
            keys,
            item.partitions,
            list(item.timestamps_ms or ()),
            [tuple(h) for h in item.headers or ()],
        )
        for item, values, keys in results
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_sources(seed: int) -> None:
    """Payloads for Kafka are equal both ways."""
    draws, went = Draws(seed), 0
    for _ in range(TURNS):
        config, batch = draws.config((TEXT, JSON)), draws.batch()
        entries = [batch, [draws.data(draws.randrange(5)) for _ in batch]]
        values, keys = [Column([v for _, v in entry], schemas=[s for s, _ in entry]) for entry in entries]
        whole = SourceBatch(
            "topic",
            values,
            draws.choice((None, keys)),
            timestamps_ms=draws.choice((None, draws.choices(MILLISECONDS, k=len(batch)), Repeated(5, len(batch)))),
            headers=draws.choice((None, [choice or () for choice in draws.choices(HEADERS, k=len(batch))])),
        )
        conversion = SourceConversion(config, {})
        conversion._chain.ragged = draws.choice((0, 4))
        fused = outcome(sent, conversion._whole, whole)
        assert fused == outcome(sent, conversion._one_by_one, whole), (config, whole)
        went += fused != "refused"
    assert went > TURNS / 5


def payload(schema: Schema | None, value: Any, *, enveloped: bool) -> bytes:
    """A payload as a producer may have written it."""
    if not enveloped:
        return json.dumps(plain(value)).encode()
    tree = None if schema is None else schema_json(schema)
    return json.dumps({"schema": tree, "payload": plain(value)}, separators=(",", ":")).encode()


def plain(value: Any) -> Any:
    """JSON of data."""
    if isinstance(value, Struct):
        return {name: plain(value) for name, value in value.values.items()}
    return number_of(value, TIMESTAMP) if isinstance(value, datetime) else value


def shown(value: Any) -> Any:
    """A value with all nested types, so that 1, 1.0 and True differ."""
    if isinstance(value, Struct):
        return "struct", value.schema, [(f.name, shown(value.values.get(f.name))) for f in value.schema.fields]
    if isinstance(value, dict):
        return "map", [(shown(key), shown(value)) for key, value in value.items()]
    if isinstance(value, list | tuple):
        return "list", [shown(item) for item in value]
    return type(value).__name__, repr(value)


def written(conversion: SinkConversion, sink_batch: SinkBatch) -> Any:
    """The values that a writer gets, and the places of their records."""
    assert sink_batch.keys is not None
    assert sink_batch.origin is not None
    origin = sink_batch.origin
    return (
        [
            [(column.schema_of(n), shown(value)) for n, value in enumerate(column.values)]
            for column in (sink_batch.values.texts(), sink_batch.keys.texts())
        ],
        (origin.topics, origin.partitions, origin.offsets, origin.timestamps_ms),
        [None if header is None else tuple(header) for header in origin.headers],
        conversion.places,
    )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_sinks(seed: int) -> None:
    """Writers get equal values both ways."""
    draws, went = Draws(seed), 0
    for _ in range(TURNS):
        config, batch = draws.config((TEXT,)), draws.batch()
        enveloped, count, raw = "true" in config["value.converter.schemas.enable"], len(batch), draws.random() < 0.5
        payloads: list[bytes | None] = [payload(*item, enveloped=enveloped) for item in batch]
        if draws.random() < 0.3:
            payloads[-1] = draws.choice((None, b"", b"{", b"12345678901234567890"))
        keys = draws.choices((None, b"k", b"\xff"), k=count)
        topics, headers = draws.choices(("t1", "t1", "u"), k=count), draws.choices(HEADERS, k=count)
        origin = Origin(topics, [0] * count, list(range(count)), [5] * count, headers)
        conversion = SinkConversion(config, {})
        conversion._chain.ragged = draws.choice((0, 4))
        value, show = (list(payloads), list(keys), origin), partial(written, conversion)
        fused = outcome(show, partial(conversion.batch, raw=raw), *value)
        one_by_one = outcome(show, partial(conversion.one_by_one, raw=raw), *value)
        again = outcome(show, partial(conversion.batch, raw=raw), *value)  # now with these schemas in its caches
        assert fused == one_by_one == again, (config, payloads, keys, origin, raw)
        went += fused != "refused"
    assert went > TURNS / 5


USUAL: dict[str, list[dict[str, str]]] = {
    "rename and cast": [
        {"type": "ReplaceField$Value", "renames": "a:z", "exclude": "c"},
        {"type": "Cast$Value", "spec": "b:string"},
    ],
    "flatten": [{"type": "Flatten$Value"}, {"type": "MaskField$Value", "fields": "b"}],
    "key": [{"type": "ValueToKey", "fields": "a"}, {"type": "ExtractField$Key", "field": "a"}],
    "time and filter": [{"type": "InsertField$Value", "timestamp.field": "t"}, {"type": "Filter", "predicate": "p"}],
    "routes": [{"type": "RegexRouter", "regex": "t(.*)", "replacement": "u$1"}, {"type": "TimestampRouter"}],
    "headers": [{"type": "InsertHeader", "header": "h", "value.literal": "1"}, {"type": "DropHeaders", "headers": "i"}],
}


@pytest.mark.parametrize("steps", USUAL.values(), ids=USUAL)
def test_usual_chains_take_no_record_apart(steps: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of structs and of maps are converted by columns."""
    monkeypatch.setattr("keelman.connect.transforms.chain.Chain._by_record", None)
    config = {"transforms": ",".join(f"s{n}" for n in range(len(steps))), **PREDICATES, "key.converter": TEXT}
    config |= {f"transforms.s{n}.{name}": value for n, own in enumerate(steps) for name, value in own.items()}
    config |= {f"transforms.s{n}.type": TRANSFORMS + own["type"] for n, own in enumerate(steps)}
    flat = Struct(FLAT, {"a": "x", "b": 5, "c": None, "at": moment(5)})
    for column in (Column([flat] * 9, FLAT), Column([Draws(n).alike() for n in range(9)])):
        conversion = SourceConversion({**config, "value.converter": JSON}, {})
        whole = SourceBatch("topic", column, timestamps_ms=[5] * 9)
        assert sum(len(values) for _, values, _ in conversion._whole(whole)) == 9
