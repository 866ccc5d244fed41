"""A reader of a file that tests write to, rename and replace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keelman.connectors.file import file_reader
from support.connectors.follower import Follower


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sets the time to zero for which a renamed file must be quiet before it is left."""
    monkeypatch.setattr(file_reader, "QUIET_SECONDS", 0.0)
    return iter(())


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    file_follower = Follower(tmp_path / "in.log")
    yield file_follower
    file_follower.reader.close()
