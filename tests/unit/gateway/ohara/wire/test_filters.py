"""The filters of list requests."""

from __future__ import annotations

import pytest

from keelman.gateway.ohara.wire.filters import filtered

ONE = {
    "name": "wk", "state": "RUNNING", "xmx": 2048, "aliveNodes": ["n0", "n1"], "routes": {}, "live": True,
    "tags": {"a": "b", "deep": {"x": 1, "y": [1, 2]}}, "brokerClusterKey": {"group": "default", "name": "bk"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "passes"),
    [
        ("name", "wk", True),
        ("name", "WK", False),
        ("state", "RUNNING", True),
        ("state", "running", False),
        ("state", "none", False),
        ("error", "none", True),
        ("error", "NONE", True),
        ("error", "x", False),
        ("unknown", "x", False),
        ("", "x", True),
        ("name", "", True),
        ("xmx", "2048", True),
        ("xmx", "2048.0", True),
        ("xmx", "2.048e3", True),
        ("xmx", "1", False),
        ("xmx", "wk", False),
        ("xmx", "NaN", False),
        ("xmx", "true", False),
        ("live", "true", True),
        ("live", "TRUE", True),
        ("live", "1", False),
        ("aliveNodes", '["n0"]', True),
        ("aliveNodes", '["n1","n0"]', True),
        ("aliveNodes", "[]", True),
        ("aliveNodes", '["n2"]', False),
        ("aliveNodes", "n0", False),
        ("tags", '{"a":"b"}', True),
        ("tags", "{}", True),
        ("tags", '{"deep":{"x":1}}', True),
        ("tags", '{"deep":{"y":[2]}}', True),
        ("tags", '{"deep":{"x":true}}', False),
        ("tags", '{"a":"c"}', False),
        ("tags", '{"a":', False),
        ("tags", "[" * 100_000, False),
        ("brokerClusterKey", '{"name":"bk"}', True),
    ],
)
def test_a_filter_lets_through_what_it_says(key: str, value: str, passes: bool) -> None:
    assert filtered([ONE], [(key, value)]) == ([ONE] if passes else [])


def test_all_filters_must_hold() -> None:
    assert filtered([ONE], [("name", "wk"), ("xmx", "1")]) == []
    assert filtered([ONE, {"name": "x"}], [("name", "wk"), ("xmx", "2048")]) == [ONE]
    assert filtered([ONE, {"name": "x"}], []) == [ONE, {"name": "x"}]
