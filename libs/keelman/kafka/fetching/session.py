"""Builds the Fetch requests to one broker: after the first, only changes are requested and answered.

Sources: https://cwiki.apache.org/confluence/display/KAFKA/KIP-227 and
https://github.com/apache/kafka/blob/4.3/clients/src/main/resources/common/message/FetchRequest.json
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

from aiokafka.errors import for_code
from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest_v4, FetchRequest_v5, FetchRequest_v7

from keelman.kafka.error_codes import CODES
from keelman.kafka.fetching.fetch_wire import CONSUMER, UNKNOWN, Fetch11, FetchAnswer, FetchedPart
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.leaders.metadata import Part

_Struct: TypeAlias = FetchRequest_v4 | FetchRequest_v5 | FetchRequest_v7
_FORGOTTEN = frozenset(CODES[name] for name in ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"))
MAX_EPOCH = (1 << 31) - 1


@dataclass
class Fetch(Request[_Struct]):  # type: ignore[misc]
    """A Fetch in the newest version that both sides support: with sessions from 7 on, with epochs and racks in 11.

    `wanted` are all positions to read, for brokers without sessions, `positions` those that the session requests: the
    offset and leader epoch of each."""

    API_KEY = 1

    settings: FetchSettings
    _: KW_ONLY
    isolation: int
    wait_ms: int
    session: tuple[int, int]
    wanted: Mapping[Part, tuple[int, int]]
    positions: Mapping[Part, tuple[int, int]]
    forgotten: list[Part]

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        """Returns the request in the version for a broker that supports `versions`."""
        low, high = versions.get(self.API_KEY, (0, -1))
        if not low <= Fetch11.API_VERSION <= high:
            return super().prepare(versions)
        return Fetch11(
            self.settings,
            isolation=self.isolation,
            wait_ms=self.wait_ms,
            session=self.session,
            positions=self.positions,
            forgotten=self.forgotten,
        )

    def build(self, request_struct_class: type[_Struct]) -> _Struct:
        """Returns the request in the version of that class."""
        version = request_struct_class.API_VERSION
        settings, size = self.settings, self.settings.partition_bytes
        topics: dict[str, list[tuple[int, ...]]] = {}
        for (topic, number), (at, _) in (self.positions if version >= 7 else self.wanted).items():
            start = (UNKNOWN,) if version >= 5 else ()
            topics.setdefault(topic, []).append((number, at, *start, size))
        fields: list[Any] = [CONSUMER, self.wait_ms, settings.min_bytes, settings.answer_bytes, self.isolation]
        if version >= 7:
            forgotten: dict[str, list[int]] = {}
            for topic, number in self.forgotten:
                forgotten.setdefault(topic, []).append(number)
            fields += [*self.session, list(topics.items()), list(forgotten.items())]
        else:
            fields.append(list(topics.items()))
        return request_struct_class(*fields)


class FetchSession:
    """A fetcher's session with one broker. One request at a time; not usable after a request without an answer."""

    def __init__(self, settings: FetchSettings, isolation: int) -> None:
        self._settings = settings
        self._isolation = isolation
        self._id = 0
        self._epoch = 0
        self._known: dict[Part, tuple[int, int]] = {}

    def request(self, positions: dict[Part, tuple[int, int]], wait_ms: int) -> Fetch:
        """Requests these offsets, each with its leader's epoch, -1 for any: a leader of another epoch refuses. Sends
        all of them in the first request, and always if the broker keeps no session."""
        former = self._known if self._epoch else {}
        changed = {part: at for part, at in positions.items() if former.get(part) != at}
        forgotten = [part for part in former if part not in positions]
        self._known = positions
        return Fetch(
            self._settings,
            isolation=self._isolation,
            wait_ms=wait_ms,
            session=(self._id, self._epoch),
            wanted=positions,
            positions=changed,
            forgotten=forgotten,
        )

    def answered(self, answer: Any) -> list[FetchedPart]:
        """Returns the parts of an answer; none if the broker has dropped the session, so that all is requested again.

        Raises KafkaError for any other refusal.
        """
        fetch_answer: FetchAnswer = answer if isinstance(answer, FetchAnswer) else _as_newest(answer)
        if fetch_answer.error_code in _FORGOTTEN:
            self._epoch = 0
            return []
        if fetch_answer.error_code:
            raise for_code(fetch_answer.error_code)
        self._id = fetch_answer.session_id
        self._epoch = 0 if not self._id else 1 + self._epoch % MAX_EPOCH
        return fetch_answer.parts


def _as_newest(answer: Any) -> FetchAnswer:
    """Converts an answer of an older version; those before 7 have no session."""
    version, parts = answer.API_VERSION, list[FetchedPart]()
    for topic, partitions in answer.topics:
        for number, code, high, stable, *more in partitions:
            aborted = more[1 if version >= 5 else 0] or []
            parts.append(FetchedPart((topic, number), code, high, stable, aborted, -1, more[-1] or b""))
    return FetchAnswer(answer.error_code, answer.session_id, parts) if version >= 7 else FetchAnswer(0, 0, parts)
