"""The last lines of a process's own log."""

from __future__ import annotations

from keelman.runtime.logs.own_lines import OwnLines


def test_the_newest_lines_are_kept_within_the_limit() -> None:
    own = OwnLines()
    render = own.noting(lambda logger, method, event: event["event"])
    assert render(None, "info", {"event": "before"}) == "before"
    own.keep(9)
    for text in ("one", "two", "three"):
        assert render(None, "info", {"event": text}) == text
    assert own.text() == "three\n"
    own.keep(5)
    assert own.text() == ""
