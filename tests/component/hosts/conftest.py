"""Hosts are network namespaces here: without them, nothing in this folder can run."""

import pytest

from support.hosts.networks import missing


@pytest.fixture(scope="package", autouse=True)
def namespaces() -> None:
    if problem := missing():
        pytest.skip(problem)
