"""A broker behind a proxy, for each file that uses the fixture."""

from collections.abc import AsyncIterator

import pytest

from support.brokers.broker import proxied_broker
from support.brokers.kafka_proxy import KafkaProxy


@pytest.fixture(scope="module")
async def kafka(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[KafkaProxy]:
    """A broker whose proxy loses and holds chosen requests."""
    async with proxied_broker(tmp_path_factory.mktemp("broker")) as proxy:
        yield proxy
