"""The content of a source's transaction when it ends, and when it may not end, with a recording client."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from keelman.connect.records import Column, SourceBatch
from keelman.engine.control import Control, CutShort
from keelman.engine.producing.producer_options import producer_options
from keelman.engine.producing.transactions import TransactionalProducer
from keelman.kafka.batches.producer import EPOCH_EACH


class NotingClient:
    """Delivers every batch at once; `on_flush` is called while the producer waits for that."""

    is_ending, coordinator_losses, transaction_version = False, 0, EPOCH_EACH
    most_bytes: dict[str, int] = {}  # noqa: RUF012
    throttled_until = 0.0

    def __init__(self, on_flush: Callable[[], None] = lambda: None) -> None:
        self.calls: list[str] = []
        self._on_flush = on_flush

    def send(self, topic: str, _partition: int, _data: bytearray, records: int, _on_stored: Any) -> None:
        self.calls.append(f"{records} to {topic}")

    def ship(self) -> None:
        """Has sent everything."""

    def commit_when_delivered(self, _allowed: Callable[[], None]) -> None:
        """Waits for `end`."""

    async def flush(self) -> None:
        self._on_flush()

    async def end(self, *, commit: bool) -> None:
        self.calls.append("committed" if commit else "aborted")


def producer_over(client: NotingClient, control: Control) -> TransactionalProducer:
    """A producer that is connected to this client and knows its topics."""
    options = producer_options({"bootstrap.servers": "127.0.0.1:1"}, client_id="c", transactional_id="id")
    producer = TransactionalProducer(options, control)
    producer._producer = client  # type: ignore[assignment]
    producer._counts = dict.fromkeys(("t", "offsets"), (1, time.monotonic()))
    producer.send(SourceBatch("t", Column([b"v"])), [b"v"], None)
    return producer


def test_offsets_are_in_the_transaction_of_their_records() -> None:
    client = NotingClient()
    producer = producer_over(client, Control())
    producer.commit("offsets", [(b"partition", b"offset")])
    assert producer.committed
    assert client.calls == ["1 to t", "1 to offsets", "committed"]


def test_a_slot_that_was_given_up_while_its_records_were_delivered_does_not_commit() -> None:
    allowed = [True]
    client = NotingClient(on_flush=allowed.clear)
    producer = producer_over(client, Control(still_allowed=lambda: bool(allowed)))
    with pytest.raises(CutShort, match="HOME_LOST"):
        producer.commit("offsets", [(b"partition", b"offset")])
    assert not producer.committed
    assert client.calls == ["1 to t", "1 to offsets"]
    producer.abort()
    assert client.calls[-1] == "aborted"
