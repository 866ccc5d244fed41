"""Fixtures that the component tests of one process share: a broker and a Spark service, each started at its first use.

Tests that share them name topics, groups and connectors so that no other test has them: by `name`, or by a word of
their own file.
"""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from keelman.connectors.plugins.client import PluginHost
from support.brokers.broker import running_broker
from support.brokers.secure_broker import SecureBroker, secure_broker
from support.connectors.plugin_hosts import weather_host
from support.copying.harness import OFFSET_PARTITIONS, OFFSET_TOPIC, Run
from support.kafka.topics import create_topic
from support.servers.registry import RegistryProcess, missing, running_registry
from support.spark.service import SparkService, spark_service
from support.worker.processes import LinkSide, link_side

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
async def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A broker with an offset topic for copy runs that no worker has granted."""
    async with running_broker(tmp_path_factory.mktemp("broker")) as servers:
        create_topic(servers, OFFSET_TOPIC, OFFSET_PARTITIONS, **{"cleanup.policy": "compact"})
        yield servers


@pytest.fixture(scope="module")
async def broker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SecureBroker]:
    """A broker of the file's own, with a listener for each way to log in."""
    async with secure_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
async def registry(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RegistryProcess]:
    """A schema registry that keeps its schemas when it is ended and started; subjects begin with a test's `name`."""
    if problem := missing():
        pytest.skip(problem)
    async with running_registry(tmp_path_factory.mktemp("registry"), keep=True) as running:
        yield running


@pytest.fixture(scope="session")
async def spark(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SparkService]:
    """The real Spark service; it keeps the workers apart from each other."""
    async with spark_service(tmp_path_factory.mktemp("spark")) as service:
        yield service


@pytest.fixture
async def link() -> AsyncIterator[tuple[LinkSide, str]]:
    """An obedient Spark side of a worker's link that copies nothing; and its address."""
    async with link_side() as side:
        yield side


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PluginHost]:
    """The host of a plugin."""
    monkeypatch.setenv("KEELMAN_CACHE", str(tmp_path / "cache"))
    async with weather_host(tmp_path) as host:
        yield host


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for a topic or a connector that no other test has."""
    return f"{request.module.__name__.rpartition('.')[2].removeprefix('test_').replace('_', '-')}-{next(NUMBERS)}"


@pytest.fixture
def runs() -> Iterator[Callable[..., Run]]:
    """Starts copy runs and cuts the remaining ones at the end."""
    started: list[Run] = []

    def start(*args: object, **kwargs: object) -> Run:
        started.append(Run(*args, **kwargs))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for run in started:
        run.loop.control.cut("TEST_ENDED")
    for run in started:
        assert run.loop.join(300)
