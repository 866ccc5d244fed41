"""Hosts are network namespaces here: without them, nothing in this folder can run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hosts.networks import cabled, missing
from support.hosts.operator import Commands, operated
from support.servers.postgresql import BINARIES

HOSTS = ("n1", "n2", "n3")


@pytest.fixture(scope="package", autouse=True)
def namespaces() -> None:
    if problem := missing():
        pytest.skip(problem)


@pytest.fixture(scope="package")
def postgresql() -> None:
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """The commands of an operator of three hosts, the first ones on n1."""
    with cabled(tmp_path, HOSTS) as system, operated(system, HOSTS[0]) as opened:
        yield opened
