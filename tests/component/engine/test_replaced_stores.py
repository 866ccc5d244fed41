"""Brokers that get a certificate of another authority, and a trust store that is replaced while a sink runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from component.engine.test_sinks import file_sink, produce
from keelman.runtime.processes.ports import free_ports
from support.brokers.secure_broker import secure_broker
from support.certificates import PASSWORD, Authority
from support.copying.harness import Run, ticket
from support.proxy import Proxy

pytestmark = pytest.mark.component


async def test_a_sink_that_has_copied_goes_on_with_the_store_that_is_there_now(name: str, tmp_path: Path) -> None:
    proxy, new, taken = Proxy("127.0.0.1", free_ports(1)[0]), Authority("new"), tmp_path / "taken"
    async with proxy, secure_broker(tmp_path / "broker", proxies={"TLS": proxy}) as broker:
        await asyncio.to_thread(produce, broker.at("PLAINTEXT"), name, range(10))
        store = {"location": str(broker.trust), "password": PASSWORD}
        worker = {"security.protocol": "SSL", **{f"ssl.truststore.{key}": value for key, value in store.items()}}
        order = ticket(proxy.address, file_sink(name, taken), worker_config=worker)
        first = Run(order)
        await asyncio.to_thread(first.until_records, 10)
        await broker.show("TLS", new.issue("broker", "127.0.0.1"))
        new.write_trust(tmp_path / "next.p12").replace(broker.trust)
        proxy.reset()
        failed = await asyncio.to_thread(first.until_state, "FAILED")
        assert failed.retriable, failed
        assert "key or trust store were changed" in failed.message
        await asyncio.to_thread(produce, broker.at("PLAINTEXT"), name, range(10, 20))
        await asyncio.to_thread(Run(order).copied, 10)
    assert [int(line) for line in taken.read_bytes().splitlines()] == list(range(20))
