"""Finds where leader epochs end in the logs of the partitions' leaders: KIP-320."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError

from keelman.kafka.clients import Client
from keelman.kafka.connections import answer_of
from keelman.kafka.error_codes import CODES, passes
from keelman.kafka.fetching.offset_requests import AskedEpoch, AskEpochEnds, EpochEnd, EpochEnds
from keelman.kafka.leaders.metadata import NO_EPOCH, Part, metadata_of
from keelman.runtime.backoff import Backoff


async def epoch_ends(client: Client, epochs: Mapping[Part, int], *, seconds: float) -> dict[Part, EpochEnd]:
    """Returns where these epochs end in the logs of the partitions' leaders, which it finds itself.

    Retries transient errors (a leader that moves, a broker that is away) until the time is over; the answer then has
    the last error code, or NETWORK_EXCEPTION without one. Raises IncompatibleBrokerVersion.
    """
    clock = asyncio.get_running_loop().time
    deadline, backoff = clock() + seconds, Backoff(first=0.05, most=1.0)
    open_parts, ends = dict(epochs), dict[Part, EpochEnd]()
    while open_parts and clock() < deadline:
        try:
            async with asyncio.timeout_at(deadline):
                ends |= await _ends_once(client, open_parts)
        except IncompatibleBrokerVersion:
            raise
        except (KafkaError, OSError, TimeoutError):
            pass
        open_parts = {part: epoch for part, epoch in epochs.items() if part not in ends or passes(ends[part].code)}
        if open_parts:
            await asyncio.sleep(max(0.0, min(deadline - clock(), backoff.next())))
    nothing = EpochEnd(NO_EPOCH, -1, CODES["NETWORK_EXCEPTION"])
    return {part: ends.get(part, nothing) for part in epochs}


async def _ends_once(client: Client, epochs: Mapping[Part, int]) -> dict[Part, EpochEnd]:
    metadata = await metadata_of(client, {topic for topic, _ in epochs})
    answered: dict[Part, EpochEnd] = {}
    by_node: dict[int, dict[Part, AskedEpoch]] = {}
    for (topic, number), epoch in epochs.items():
        leader = metadata.topics[topic].partitions.get(number) if topic in metadata.topics else None
        if leader is None:
            code = metadata.topics[topic].code if topic in metadata.topics else 0
            unknown = code or CODES["UNKNOWN_TOPIC_OR_PARTITION"]
            answered[topic, number] = EpochEnd(NO_EPOCH, -1, unknown)
        elif leader.node < 0:
            answered[topic, number] = EpochEnd(NO_EPOCH, -1, CODES["LEADER_NOT_AVAILABLE"])
        else:
            by_node.setdefault(leader.node, {})[topic, number] = AskedEpoch(epoch, leader.epoch)
    for node, epochs_of_node in by_node.items():
        answer: EpochEnds = await answer_of(client, node, AskEpochEnds(epochs_of_node))
        answered |= answer.parts
    return answered
