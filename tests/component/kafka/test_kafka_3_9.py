"""Exactly once on a broker of Kafka 3.9: partitions are added to each transaction, and all of them share one epoch.

Contracts of copy runs from other files, and a broker that is away now and then.
"""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from component.engine.conftest import bench  # noqa: F401
from component.engine.test_commits import (  # noqa: F401
    test_a_producer_whose_commit_was_slow_is_not_used_again,
    test_a_producer_whose_coordinator_hung_up_is_not_used_again,
    test_an_endtxn_that_comes_during_a_later_transaction_ends_nothing,
)
from component.engine.test_copy_engine import (  # noqa: F401
    SOURCE_DEATHS,
    die_and_finish,
    numbered,
    records,
    source,
    test_a_fenced_run_fails_and_may_be_granted_again,
)
from support.brokers.broker import BrokerProcess
from support.brokers.kafka_proxy import KafkaProxy
from support.copying.fed_source import Brokers
from support.copying.harness import OFFSET_PARTITIONS, committed_offsets, hosted
from support.kafka.topics import create_topic
from support.waiting import until

pytestmark = [pytest.mark.component, pytest.mark.slow]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> BrokerProcess:
    return BrokerProcess(tmp_path_factory.mktemp("broker"), module="support.brokers.broker_3_9")


@pytest.fixture(scope="module")
def brokers(broker: BrokerProcess) -> Iterator[Brokers]:
    started = Brokers(broker.home, broker)
    assert "Kafka version: 3.9" in broker.output
    create_topic(started.bootstrap, "test-offsets", OFFSET_PARTITIONS, **{"cleanup.policy": "compact"})
    yield started
    started.close()


@pytest.fixture(scope="module")
def bootstrap(brokers: Brokers) -> str:
    return brokers.bootstrap


@pytest.fixture
def one_epoch() -> None:
    """These brokers have no other kind of transactions."""


def test_lines_are_in_the_topic_once_after_crashes(brokers: Brokers, name: str, tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(numbered(60_000, width=60))
    create_topic(brokers.bootstrap, name)
    config, whole = source(name, path, **{"keelman.commit.interval.ms": "20"}), path.stat().st_size
    deaths = [SOURCE_DEATHS[at] for at in (0, 1, 3)]
    die_and_finish(brokers.bootstrap, config, deaths, lambda: committed(brokers, config) == whole, tmp_path / "log")
    values = [value for _, _, value in records(brokers.bootstrap, name)]
    assert values == path.read_bytes().splitlines()
    assert len(records(brokers.bootstrap, name, "read_uncommitted")) > len(values)


def test_a_broker_that_is_away_again_and_again_loses_and_doubles_nothing(
    brokers: Brokers, name: str, tmp_path: Path
) -> None:
    """The broker is the coordinator too. A run whose commit has no answer fails, and the next one continues."""
    path, log = tmp_path / "given", tmp_path / "log"
    create_topic(brokers.bootstrap, name)
    config = source(name, path, **{"keelman.commit.interval.ms": "20"})
    path.write_bytes(b"")
    with hosted(brokers.bootstrap, config, log) as process, path.open("ab", 0) as file:
        for start in range(0, 60_000, 10_000):
            before = path.stat().st_size
            file.write(numbered(10_000, start))
            until(lambda before=before: committed(brokers, config) >= before, "the part before is committed")
            brokers.call(away(brokers.proxy))
        whole = path.stat().st_size
        until(lambda: committed(brokers, config) == whole, "all is committed")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()[-4000:]
    assert [value for _, _, value in records(brokers.bootstrap, name)] == path.read_bytes().splitlines()


async def away(proxy: KafkaProxy) -> None:
    proxy.refusing = True
    proxy.reset()
    await asyncio.sleep(0.3)  # the fault itself
    proxy.refusing = False


def committed(brokers: Brokers, config: dict[str, str]) -> int:
    """The newest position in the file."""
    offsets = dict(committed_offsets(brokers.bootstrap, "test-offsets", config["name"]))
    return max((json.loads(offset)["position"] for offset in offsets.values()), default=0)
