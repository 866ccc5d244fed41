"""The target of a raw path, and which of its segments are names."""

from __future__ import annotations

import pytest

from keelman.runtime.http.raw_paths import RawRouter, decoded, raw_path, segments_of

ROUTER = RawRouter(
    [
        ("GET", "connectors/{name}", "one"),
        ("GET", "connectors/{name}/tasks/{task}", "task"),
        ("GET", "connectors/{name}/status", "status"),
        ("PUT", "connectors/{name}/status", "never"),
        ("GET", "/", "root"),
        ("GET", "connectors/x", "behind the first"),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/connectors/a", ("one", {"name": "a"})),
        ("GET", "/connectors/x", ("one", {"name": "x"})),
        ("GET", "/connectors/a%2Fstatus", ("one", {"name": "a/status"})),
        ("GET", "/connectors/%C3%BC/status", ("status", {"name": "ü"})),
        ("GET", "/connectors/a/tasks/0", ("task", {"name": "a", "task": "0"})),
        ("GET", "/connectors/", ("one", {"name": ""})),
        ("GET", "/", ("root", {})),
        ("POST", "/connectors/a", None),
        ("GET", "/connectors/a/tasks", None),
        ("GET", "/connectors", None),
    ],
)
def test_an_escaped_slash_separates_nothing(
    method: str, path: str, expected: tuple[str, dict[str, str]] | None
) -> None:
    assert ROUTER.find(method, segments_of(path)) == expected


def test_the_query_is_not_part_of_a_path() -> None:
    assert raw_path({"raw_path": b"/a%2Fb?c=d", "path": "/a/b"}) == "/a%2Fb"
    assert raw_path({"path": "/a/b"}) == "/a/b"


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        decoded("%ff")
