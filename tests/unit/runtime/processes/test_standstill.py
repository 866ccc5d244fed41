"""A standstill is announced around its work, and ends even if the work fails."""

from __future__ import annotations

import pytest

from keelman.runtime.processes import standstill as module
from keelman.runtime.processes.standstill import announce_by, standstill


class Announcer:
    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, seconds: float) -> None:
        self.said.append(f"begins, {seconds:g} s")

    def end(self) -> None:
        self.said.append("ends")


def test_it_is_announced_and_ends_even_where_its_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_announcer", None)
    with standstill(60):
        pass  # no announcer is set
    announcer = Announcer()
    announce_by(announcer)

    def fails() -> None:
        with standstill(60):
            assert announcer.said == ["begins, 60 s"]
            raise OSError("no machine")

    with pytest.raises(OSError, match="no machine"):
        fails()
    assert announcer.said == ["begins, 60 s", "ends"]
