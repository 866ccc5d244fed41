"""Checks positions with a partition's leader before a fetch: what their offsets are, and whether the log has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.offset import OffsetRequest

from keelman.kafka.clients import Client
from keelman.kafka.connections import answer_of
from keelman.kafka.error_codes import CODES, name_of
from keelman.kafka.fetching.offset_requests import AskedEpoch, AskEpochEnds, AskOffsets, EpochEnds, FoundOffset, Offsets
from keelman.kafka.fetching.position import EARLIEST, LATEST, FetchPosition, diverges_at, goes_on_at
from keelman.kafka.leaders.metadata import NO_EPOCH, Part
from keelman.runtime.logs.logging import get_logger

Reset: TypeAlias = Literal["earliest", "latest", "none"]
_Led: TypeAlias = Mapping[Part, tuple[FetchPosition, int]]
_Still: TypeAlias = Callable[[Part], bool]
READ_UNCOMMITTED = 0

_log = get_logger()


class FetchFailure(Exception):
    """Fetching cannot continue: `code` is Kafka's error code, `name` its name."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name_of(code)


class PositionChecks:
    """Corrects positions that do not fit a leader's log. `reset` applies to missing offsets, unless they are missing
    because the log has lost its tail."""

    def __init__(self, client: Client, isolation: int, reset: Reset) -> None:
        self._client = client
        self._isolation = isolation
        self._reset = reset

    def restart(self, part: Part, position: FetchPosition, topic_id: str) -> None:
        """Reads a recreated topic of the same name from its beginning. Raises FetchFailure if the reset is "none"."""
        if self._reset == "none":
            raise _not_there(part, position, f"the topic was deleted and created again (its id is {topic_id})")
        _log.warning("topic_recreated", topic=part[0], partition=part[1], offset=position.offset, topic_id=topic_id)
        position.restart(topic_id)

    async def check(self, node: int, led: _Led, still: _Still) -> dict[Part, int]:
        """Checks each position with its leader in the given epoch; returns the error codes of the failed lookups.

        Leaves out partitions that are not `still` led there when the answer comes: then another leader is queried.

        Raises KafkaError, and FetchFailure where a position is lost that may not be reset.
        """
        problems: dict[Part, int] = {}
        for ask in (self._check_epochs, self._find_missing, self._resolve):
            rest = {part: at for part, at in led.items() if part not in problems and still(part)}
            problems |= await ask(node, rest, still)
        return {part: code for part, code in problems.items() if still(part)}

    async def _check_epochs(self, node: int, led: _Led, still: _Still) -> dict[Part, int]:
        """Cuts positions back where the log has lost records that were read; repeats while epochs are unknown to it."""
        problems: dict[Part, int] = {}
        while True:
            epochs = {
                part: AskedEpoch(at.epoch, epoch)
                for part, (at, epoch) in led.items()
                if part not in problems
                and still(part)
                and at.offset >= 0
                and at.epochs
                and at.checked != epoch != NO_EPOCH
            }
            if not epochs:
                return problems
            try:
                answer: EpochEnds = await answer_of(self._client, node, AskEpochEnds(epochs))
            except IncompatibleBrokerVersion:
                for part in epochs:
                    led[part][0].checked = led[part][1]
                return problems
            for part in filter(still, epochs):
                position, current = led[part]
                end = answer.parts.get(part)
                code = CODES["UNKNOWN_SERVER_ERROR"] if end is None else end.code
                if end is None or code:
                    problems[part] = code
                    continue
                at = diverges_at(position, end)
                if at is None:
                    position.checked = current
                else:
                    self._truncated(part, position, at)

    def _truncated(self, part: Part, position: FetchPosition, goes_on: int) -> None:
        lost = position.offset - goes_on
        if self._reset == "none":
            reason = f"the partition's log was truncated: the records from offset {goes_on} on are no longer in it"
            raise _not_there(part, position, reason)
        _log.warning(
            "log_truncated", topic=part[0], partition=part[1], offset=position.offset, goes_on=goes_on, lost=lost
        )
        position.cut(goes_on)

    async def _find_missing(self, node: int, led: _Led, still: _Still) -> dict[Part, int]:
        """Resolves positions that a leader's log does not have."""
        missing = {part: epoch for part, (at, epoch) in led.items() if at.missing}
        begins = await self._offsets(
            node, READ_UNCOMMITTED, {part: (EARLIEST, epoch) for part, epoch in missing.items()}
        )
        ends = await self._offsets(node, READ_UNCOMMITTED, {part: (LATEST, epoch) for part, epoch in missing.items()})
        problems: dict[Part, int] = {}
        for part in filter(still, missing):
            position = led[part][0]
            begin, end = begins[part], ends[part]
            if begin.code or end.code:
                problems[part] = begin.code or end.code
                continue
            at = goes_on_at(position, begin.offset, end.offset, self._client.leaders.topic_id(part[0]))
            if at is not None and at < position.offset:
                self._truncated(part, position, at)
            elif at is not None:
                position.missing = False
            else:
                self._reset_position(part, position)
        return problems

    def _reset_position(self, part: Part, position: FetchPosition) -> None:
        if self._reset == "none":
            raise _not_there(part, position, "")
        _log.warning("offset_not_there", topic=part[0], partition=part[1], offset=position.offset, goes_on=self._reset)
        position.restart(position.topic_id, EARLIEST if self._reset == "earliest" else LATEST)

    async def _resolve(self, node: int, led: _Led, still: _Still) -> dict[Part, int]:
        """Looks up the offsets of positions at the beginning or the end of their partitions."""
        offsets_to_find = {part: (at.offset, epoch) for part, (at, epoch) in led.items() if at.offset < 0}
        problems: dict[Part, int] = {}
        for part, listed in (await self._offsets(node, self._isolation, offsets_to_find)).items():
            if listed.code:
                problems[part] = listed.code
            elif still(part):
                led[part][0].offset = listed.offset
        return problems

    async def _offsets(
        self, node: int, isolation: int, offsets_to_find: Mapping[Part, tuple[int, int]]
    ) -> dict[Part, FoundOffset]:
        return await offsets_of(self._client, node, isolation, offsets_to_find) if offsets_to_find else {}


async def offsets_of(
    client: Client, node: int, isolation: int, requested: Mapping[Part, tuple[int, int]]
) -> dict[Part, FoundOffset]:
    """Returns the first (EARLIEST) or end (LATEST) offsets of partitions, from their leader.

    `requested` has the timestamp (EARLIEST or LATEST) and the leader epoch of each partition. Raises KafkaError.
    """
    try:
        answer: Offsets = await answer_of(client, node, AskOffsets(isolation, requested))
        offsets = dict(answer.parts)
    except IncompatibleBrokerVersion:
        topics: dict[str, list[tuple[int, int]]] = {}
        for (topic, number), (timestamp, _epoch) in requested.items():
            topics.setdefault(topic, []).append((number, timestamp))
        old = await answer_of(client, node, OffsetRequest(-1, isolation, list(topics.items())))
        offsets = {
            (topic, number): FoundOffset(offset, code)
            for topic, partitions in old.topics
            for number, code, _time, offset in partitions
        }
    silent = FoundOffset(-1, CODES["UNKNOWN_SERVER_ERROR"])
    return {part: offsets.get(part, silent) for part in requested}


def _not_there(part: Part, position: FetchPosition, reason: str) -> FetchFailure:
    text = f"offset {position.offset} of partition {part[1]} of topic {part[0]} does not exist"
    return FetchFailure(CODES["OFFSET_OUT_OF_RANGE"], f"{text}: {reason}" if reason else text)
