"""When a broker is ready: it has joined its cluster and answers requests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from keelman.broker.jvm import Jvm
from keelman.kafka.probe import ask_broker
from keelman.model.errors import Unavailable
from keelman.runtime.supervise import first_of

EVERY_SECONDS = 0.05


async def until_ready(jvm: Jvm, host: str, port: int, node_id: int, *, seconds: float) -> None:
    """Returns when the broker answers as a member of its cluster.

    Raises Internal when it ends before, with its reason, and Unavailable when it takes longer than the time.
    """
    try:
        async with asyncio.timeout(seconds):
            await first_of(jvm.ended(), _answers(host, port, node_id))
    except TimeoutError:
        raise Unavailable(
            f"the broker did not answer on {host}:{port} within {seconds:g} s: see its log, "
            "or set broker.start_seconds higher",
            reason="BROKER_NOT_READY",
        ) from None


def _answers(host: str, port: int, node_id: int) -> Coroutine[Any, Any, None]:
    async def ask() -> None:
        while True:
            answer = await ask_broker(host, port)
            if answer is not None and answer.serves(node_id):
                return
            await asyncio.sleep(EVERY_SECONDS)

    return ask()
