"""Sends single requests about a consumer group from outside it, until its coordinator can answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import RequestStruct, Response
from aiokafka.protocol.types import Schema

from keelman.kafka.clients import low_level_client
from keelman.kafka.groups.protocol import COORDINATOR_LOADING, LOST_COORDINATOR, GroupClient
from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff

_PASSING = (*LOST_COORDINATOR, COORDINATOR_LOADING)


def request_of(name: str, key: int, version: int, fields: Schema, answer: Schema) -> Callable[..., Any]:
    """Returns a class of requests with a Kafka API's key in one version, created from the values of their fields."""

    class Answer(Response):  # type: ignore[misc]  # the library is not typed
        API_KEY, API_VERSION, SCHEMA = key, version, answer

    class Made(RequestStruct):  # type: ignore[misc]
        API_KEY, API_VERSION, RESPONSE_TYPE, SCHEMA = key, version, Answer, fields

        def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Made:
            low, high = versions.get(key, (0, -1))
            if not low <= version <= high:
                raise IncompatibleBrokerVersion(f"the broker knows {name} {low} to {high}, not {version}")
            return self

    return Made


async def ask_group(
    properties: Mapping[str, str],
    group: str,
    request: Callable[[], Any],
    *,
    client_id: str,
    answer_ms: int,
    seconds: float,
) -> Any:
    """Returns the coordinator's answer; `request` creates a request, possibly again while the coordinator moves.

    `properties` are those of Java's clients. After `seconds` any answer is returned. Raises Unavailable when there is
    none until then.
    """
    backoff = Backoff(first=0.05, most=1.0)
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    async with low_level_client(properties, client_id=client_id, timeout_ms=answer_ms) as client:
        while True:
            late = loop.time() > until
            asking = GroupClient(client, group, session_ms=0, rebalance_ms=0)  # each looks up the coordinator again
            try:
                answer = await asking.ask(request())
                if late or not any(code in _PASSING for code in error_codes(answer)):
                    return answer
            except Unavailable:
                if late:
                    raise
            await asyncio.sleep(backoff.next())


def error_codes(answer: Any) -> list[int]:
    """Returns all error codes of an answer, 0 for success: its own, and those of partitions, groups and members."""
    codes = [getattr(answer, "error_code", 0)]
    for _, parts in getattr(answer, "topics", ()) or ():
        codes += [part[-1] for part in parts]
    for rows in (getattr(answer, "results", ()), getattr(answer, "members", ())):
        codes += [row[-1] for row in rows or ()]
    return codes
