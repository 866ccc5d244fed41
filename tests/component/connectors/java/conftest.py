"""Fixtures of the tests of Java connectors: the kit's classes, compiled once, and a sink that notes its calls."""

from pathlib import Path

import pytest

from support.java.kit import compiled
from support.java.scripted_sink import Scripted
from support.kafka.topics import create_topic


@pytest.fixture(scope="session")
async def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit's Java classes."""
    return await compiled(tmp_path_factory.mktemp("classes"))


@pytest.fixture
def scripted(bootstrap: str, name: str, classes: Path, tmp_path: Path) -> Scripted:
    """A task of a sink, whose topic has one partition."""
    create_topic(bootstrap, name)
    return Scripted(bootstrap, name, classes, tmp_path)
