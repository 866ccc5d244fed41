"""A sink whose target accepts nothing: it reports the backlog before it writes, so that its worker sees it stuck."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.copying.harness import Run, ticket
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component


def test_what_is_left_is_told_before_the_first_write(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    create_topic(bootstrap, name)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        config = {"name": f"{name}-out", "connector.class": "FileStreamSink", "file": str(pipe), "topics": name}
        run = runs(ticket(bootstrap, config))
        run.until(lambda u: u.progress.HasField("lag") and u.progress.lag == 0)
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(name, value=b"x" * 900_000)  # many times the size of a pipe
        producer.flush(300)
        assert run.until(lambda u: u.progress.lag == 1).progress.records == 0
    finally:
        os.close(reader)
