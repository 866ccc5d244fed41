"""A chain gives the same result over columns and over single records."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.connect.records import Column, SourceBatch
from keelman.connect.schema import STRING
from keelman.engine.source.conversion import SourceConversion

JSON = "org.apache.kafka.connect.json.JsonConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms."
TEXT = "org.apache.kafka.connect.storage.StringConverter"
LINES = st.lists(st.one_of(st.binary(max_size=12), st.text(max_size=12).map(str.encode)), max_size=6)
NAMES = st.sampled_from(["line", "a", "b", "ü", 'q"'])
STEPS = st.one_of(
    st.builds(lambda n: {"type": f"{TRANSFORMS}HoistField$Value", "field": n}, NAMES),
    st.builds(
        lambda n, v: {"type": f"{TRANSFORMS}InsertField$Value", "static.field": n, "static.value": v},
        NAMES,
        st.text(max_size=4),
    ),
    st.builds(lambda n: {"type": f"{TRANSFORMS}InsertField$Value", "topic.field": n, "timestamp.field": "at"}, NAMES),
    st.builds(lambda n: {"type": f"{TRANSFORMS}InsertField$Value", "partition.field": n}, NAMES),
    st.builds(
        lambda n, m: {"type": f"{TRANSFORMS}ReplaceField$Value", "exclude": n, "renames": f"{m}:z"}, NAMES, NAMES
    ),
    st.just({"type": "InsertHeader", "header": "h", "value.literal": "[1]"}),
    st.just({"type": "RegexRouter", "regex": "t(.*)", "replacement": "$1u"}),
)


def outcome(conversion: SourceConversion, batch: SourceBatch) -> Any:
    """The payloads, or the error."""
    try:
        return [
            (result.topic, [bytes(v) for v in values], keys, [tuple(h) for h in result.headers or ()])
            for result, values, keys in conversion.payloads(batch)
        ]
    except Exception as error:
        return type(error).__name__, str(error)


@settings(deadline=None)
@given(LINES, st.lists(STEPS, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_columns_and_records(lines: list[bytes], steps: list[dict[str, str]], typed: bool, enveloped: bool) -> None:
    config = {"transforms": ",".join(f"s{n}" for n in range(len(steps)))}
    config |= {f"transforms.s{n}.{key}": value for n, own in enumerate(steps) for key, value in own.items()}
    config |= {"key.converter": TEXT, "value.converter": JSON, "value.converter.schemas.enable": str(enveloped).lower()}
    column = Column(list(lines), STRING if typed else None, utf8=True)
    at_once, one_by_one = SourceConversion(config, {}), SourceConversion(config, {})
    one_by_one._whole = one_by_one._one_by_one  # type: ignore[method-assign]
    batch = SourceBatch("topic", column)
    assert outcome(at_once, batch) == outcome(one_by_one, batch)
