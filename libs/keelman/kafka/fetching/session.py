"""Makes the Fetch requests to one broker: after the first, only what has changed is asked for and answered.

Sources: https://cwiki.apache.org/confluence/display/KAFKA/KIP-227 and
https://github.com/apache/kafka/blob/4.3/clients/src/main/resources/common/message/FetchRequest.json
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

from aiokafka.errors import for_code
from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest_v4, FetchRequest_v5, FetchRequest_v7, FetchRequest_v11

from keelman.kafka.error_codes import CODES
from keelman.kafka.fetching.client import FetchSettings
from keelman.kafka.fetching.fetched import Part

_Struct: TypeAlias = FetchRequest_v4 | FetchRequest_v5 | FetchRequest_v7 | FetchRequest_v11
_CONSUMER, _UNKNOWN = -1, -1
_FORGOTTEN = frozenset(CODES[name] for name in ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"))
MAX_EPOCH = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class FetchedPart:
    """A broker's answer for one partition. `near` is the replica that it wants to be asked instead, -1 for none."""

    part: Part
    code: int
    high_watermark: int
    last_stable_offset: int
    aborted: list[tuple[int, int]]
    near: int
    data: bytes


@dataclass
class Fetch(Request[_Struct]):  # type: ignore[misc]
    """A Fetch in the newest version that both sides know: with sessions from 7 on, with racks from 11 on.

    `wanted` is all that is to be read, for brokers without sessions, `positions` what the session asks for: the offset
    and leader epoch of each."""

    API_KEY = 1

    settings: FetchSettings
    _: KW_ONLY
    isolation: int
    wait_ms: int
    session: tuple[int, int]
    wanted: Mapping[Part, tuple[int, int]]
    positions: Mapping[Part, tuple[int, int]]
    forgotten: list[Part]

    def build(self, request_struct_class: type[_Struct]) -> _Struct:
        """The request in the version of that class."""
        version = request_struct_class.API_VERSION
        settings, size = self.settings, self.settings.partition_bytes
        topics: dict[str, list[tuple[int, ...]]] = {}
        for (topic, number), (at, led_in) in (self.positions if version >= 7 else self.wanted).items():
            epoch = (led_in,) if version >= 9 else ()
            start = (_UNKNOWN,) if version >= 5 else ()
            topics.setdefault(topic, []).append((number, *epoch, at, *start, size))
        fields: list[Any] = [_CONSUMER, self.wait_ms, settings.min_bytes, settings.answer_bytes, self.isolation]
        if version >= 7:
            forgotten: dict[str, list[int]] = {}
            for topic, number in self.forgotten:
                forgotten.setdefault(topic, []).append(number)
            fields += [*self.session, list(topics.items()), list(forgotten.items())]
        else:
            fields.append(list(topics.items()))
        if version >= 11:
            fields.append(settings.rack)
        return request_struct_class(*fields)


class FetchSession:
    """A fetcher's session with one broker. One request at a time; after one without an answer it is of no use."""

    def __init__(self, settings: FetchSettings, isolation: int) -> None:
        self._settings = settings
        self._isolation = isolation
        self._id = 0
        self._epoch = 0
        self._known: dict[Part, tuple[int, int]] = {}

    def request(self, wanted: dict[Part, tuple[int, int]], wait_ms: int) -> Fetch:
        """For these offsets, each with the epoch that its leader leads in, -1 for any: in another one it refuses. All
        of them in the first request, and always where the broker keeps no session."""
        known = self._known if self._epoch else {}
        changed = {one: at for one, at in wanted.items() if known.get(one) != at}
        forgotten = [one for one in known if one not in wanted]
        self._known = wanted
        return Fetch(
            self._settings,
            isolation=self._isolation,
            wait_ms=wait_ms,
            session=(self._id, self._epoch),
            wanted=wanted,
            positions=changed,
            forgotten=forgotten,
        )

    def answered(self, answer: Any) -> list[FetchedPart]:
        """What it says of partitions; nothing when it has forgotten the session, so that all is asked for again.

        Raises KafkaError for any other refusal.
        """
        version = answer.API_VERSION
        if version >= 7:
            if answer.error_code in _FORGOTTEN:
                self._epoch = 0
                return []
            if answer.error_code:
                raise for_code(answer.error_code)
            self._id = answer.session_id
            self._epoch = 0 if not self._id else 1 + self._epoch % MAX_EPOCH
        return list(_parts(answer, version))


def _parts(answer: Any, version: int) -> Iterator[FetchedPart]:
    for topic, partitions in answer.topics:
        for number, code, high, stable, *more in partitions:
            aborted = more[1 if version >= 5 else 0] or []
            near = more[-2] if version >= 11 else -1
            yield FetchedPart((topic, number), code, high, stable, aborted, near, more[-1] or b"")
