"""Access files are looked at with each call."""

import pytest

from keelman.gateway.access import access_file


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_file, "LOOK_SECONDS", 0.0)
