"""A broker behind a proxy for the tests of a file, and sources that they feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.copying.fed_source import Bench, Brokers
from support.copying.harness import OFFSET_PARTITIONS
from support.kafka.topics import create_topic


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    started = Brokers(tmp_path_factory.mktemp("broker"))
    create_topic(started.bootstrap, "test-offsets", OFFSET_PARTITIONS, **{"cleanup.policy": "compact"})
    yield started
    started.close()


@pytest.fixture
def bench(brokers: Brokers) -> Iterator[Callable[..., Bench]]:
    benches: list[Bench] = []

    def make(**config: str) -> Bench:
        benches.append(Bench(brokers, **config))
        return benches[-1]

    yield make
    runs = [run for bench in benches for run in bench.runs]
    for run in runs:
        run.loop.control.cut("TEST_ENDED")
    for run in runs:
        assert run.loop.join(300)
