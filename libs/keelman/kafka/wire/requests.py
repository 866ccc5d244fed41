"""The base class of Kafka requests that go out on aiokafka's connections.

Each request has the methods that aiokafka's connection needs (`prepare`, `build_request_header`, `encode`,
`parse_response_header`, `RESPONSE_TYPE`), so it goes out with `client.send` or `connection.send`. All are "flexible":
compact strings and arrays, tagged fields.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from io import BytesIO
from typing import Any, ClassVar, NamedTuple

from aiokafka.errors import IncompatibleBrokerVersion

from keelman.kafka.wire.fields import NO_TAGS

_INT32 = struct.Struct(">i")


class AnswerHeader(NamedTuple):
    """The needed part of an answer's header."""

    correlation_id: int


class RequestHeader(NamedTuple):
    """A request's header, encoded."""

    data: bytes

    def encode(self) -> bytes:
        """Returns the encoded header."""
        return self.data


class WireRequest:
    """Base of requests that aiokafka's connection sends, each in one fixed version.

    Subclasses set Kafka's API key, the version and the class of the answer (with `decode`), and have `encode`.
    """

    API_KEY: ClassVar[int]
    API_VERSION: ClassVar[int]
    RESPONSE_TYPE: ClassVar[Any]

    def __init_subclass__(cls, *, key: int | None = None, version: int | None = None, answer: Any = None) -> None:
        for name, value in (("API_KEY", key), ("API_VERSION", version), ("RESPONSE_TYPE", answer)):
            if value is not None:
                setattr(cls, name, value)

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> WireRequest:
        """Returns itself. Raises IncompatibleBrokerVersion when the broker does not support this version."""
        low, high = versions.get(self.API_KEY, (0, -1))
        if not low <= self.API_VERSION <= high:
            name = type(self).__name__
            raise IncompatibleBrokerVersion(f"the broker knows {name} {low} to {high}, not {self.API_VERSION}")
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> RequestHeader:
        """Returns header version 2, whose client id is no compact string."""
        name = client_id.encode()
        head = struct.pack(">hhih", self.API_KEY, self.API_VERSION, correlation_id, len(name))
        return RequestHeader(head + name + NO_TAGS)

    def parse_response_header(self, data: BytesIO) -> AnswerHeader:
        """Reads header version 1."""
        correlation_id = int(_INT32.unpack(data.read(4))[0])
        if data.read(1) != NO_TAGS:
            raise ValueError("a tagged field in the header of an answer")
        return AnswerHeader(correlation_id)

    def encode(self) -> bytes:
        """Encodes the request without its header."""
        raise NotImplementedError
