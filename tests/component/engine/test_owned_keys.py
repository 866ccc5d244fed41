"""Client properties that the engine owns: a connector's values of them do not reach its clients."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.copying.harness import Run, ticket
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component


def test_tasks_that_their_connector_names_alike_do_not_fence_each_other(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    create_topic(bootstrap, name, 1)
    config = {
        "name": f"{name}-in",
        "connector.class": "VerifiableSource",
        "topic": name,
        "throughput": "-1",
        "max.records": "200",
        "output.file": "/dev/null",
        "producer.override.transactional.id": f"{name}-mine",
    }
    started = [
        runs(ticket(bootstrap, {**config, "id": str(n)}, task=n, transactional_id=f"test-workers-{name}-in-{n}"))
        for n in range(2)
    ]
    for run in started:
        run.until_records(200)
    for run in started:
        run.drain()
    assert len(messages(bootstrap, name)) == 400
