"""Requests from a broker the finalized features of its cluster, such as transaction.version: ApiVersions 3.

https://github.com/apache/kafka/blob/4.3/clients/src/main/resources/common/message/ApiVersionsResponse.json
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

from keelman.kafka.wire.fields import NO_TAGS, Fields, compact
from keelman.kafka.wire.requests import AnswerHeader, WireRequest

FINALIZED = 2
"""The answer's tag for them; absent without any."""


class FeaturesAnswer(NamedTuple):
    """The features of an answer to ApiVersions 3."""

    error_code: int
    features: dict[str, int]

    @classmethod
    def decode(cls, data: BytesIO) -> FeaturesAnswer:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        error = fields.int16()
        for _ in range(fields.count()):
            fields.raw(6)  # an api key and its lowest and highest version
            fields.tags()
        fields.int32()  # throttle time
        tags = fields.tags()
        versions: dict[str, int] = {}
        inner = Fields(tags.get(FINALIZED, NO_TAGS))
        for _ in range(inner.count()):
            name = inner.text()
            versions[name] = inner.int16()
            inner.int16()
            inner.tags()
        return cls(error, versions)


@dataclass(frozen=True, slots=True)
class AskFeatures(WireRequest, key=18, version=3, answer=FeaturesAnswer):
    """ApiVersions 3."""

    def encode(self) -> bytes:
        """Encodes name and version of the client's software, which a broker counts in its metrics."""
        return compact("keelman") + compact("1") + NO_TAGS

    def parse_response_header(self, data: BytesIO) -> AnswerHeader:
        """Reads header version 0, as in no other flexible answer: a client reads it before it knows any versions."""
        return AnswerHeader(int.from_bytes(data.read(4), "big", signed=True))
