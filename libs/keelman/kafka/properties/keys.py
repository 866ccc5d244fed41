"""The columns of the table of client properties: a key, its use here, and how its value is translated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from keelman.model.errors import InvalidArgument

ClientKind = Literal["producer", "consumer", "admin"]
Use = Literal["used", "ignored", "refused"]
SECURITY = ("security.", "ssl.", "sasl.")
HOST_AND_PORT = "host:port, comma-separated, ports from 1 to 65535"
# Java ignores a protocol prefix, `PLAINTEXT://host:9092`, and so does keelman; the other libraries do not.
_SERVER = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?(\[?[0-9a-zA-Z\-%._:]+\]?):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number, clamped to the other library's bounds; `like` maps values with another meaning there."""

    least: int
    most: int
    per: int = 1
    like: Mapping[int, int] = field(default_factory=dict)

    def of(self, key: str, text: str) -> str:
        """Returns the other library's text. Raises InvalidArgument if the text is not a number."""
        try:
            value = int(text)
        except ValueError:
            raise InvalidArgument.of(key, text, "a whole number") from None
        return str(self.like.get(value, min(max(value // self.per, self.least), self.most)))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words, in any case."""

    legal: Mapping[str, str]

    def of(self, key: str, text: str) -> str:
        """Returns the other library's word. Raises InvalidArgument, which lists the legal words."""
        legal = self.legal.get(text.lower())
        if legal is None:
            raise InvalidArgument.of(key, text, "one of " + ", ".join(self.legal))
        return legal


@dataclass(frozen=True, slots=True)
class Text:
    """Any text, passed on unchanged."""

    def of(self, key: str, text: str) -> str:
        """Returns the text itself."""
        return text


@dataclass(frozen=True, slots=True)
class Servers:
    """Addresses of brokers."""

    def of(self, key: str, text: str) -> str:
        """Returns host:port, comma-separated. Raises InvalidArgument for the first invalid address."""
        servers = [server for server in map(str.strip, text.split(",")) if server] or [text]
        return ",".join(self.address(key, server) for server in servers)

    def address(self, key: str, text: str) -> str:
        """Returns one address as host:port. Raises InvalidArgument."""
        match = _SERVER.fullmatch(text)
        if match is None or not 0 < int(match[2]) < 65536:
            raise InvalidArgument.of(key, text, HOST_AND_PORT)
        return f"{match[1]}:{match[2]}"


@dataclass(frozen=True, slots=True)
class Classes:
    """A list of Java classes of one package, by their simple or full names."""

    package: str
    legal: Mapping[str, str]

    def names(self, key: str, text: str) -> list[str]:
        """Returns their simple names without duplicates. Raises InvalidArgument for an unknown class."""
        own_names = [part.strip() for part in text.split(",") if part.strip()]
        names = list(dict.fromkeys(part.removeprefix(f"{self.package}.") for part in own_names))
        if any(name not in self.legal for name in names):
            raise InvalidArgument.of(key, text, f"one or more of {', '.join(self.legal)} of {self.package}")
        return names

    def of(self, key: str, text: str) -> str:
        """Returns the other library's names without duplicates. Raises InvalidArgument for an unknown class."""
        return ",".join(dict.fromkeys(self.legal[name] for name in self.names(key, text)))


Value: TypeAlias = Number | Choice | Text | Servers | Classes


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One property of Java's clients.

    `librdkafka` and `aiokafka` are its names in these libraries, empty without an equivalent; `says` tells a reader how
    keelman uses the key, or why it is ignored or refused. `accepted` are values of an ignored or refused key that
    describe keelman's own behaviour: they are neither noted nor refused.
    """

    name: str
    clients: str
    """The clients that have it: p, c and a, for producer, consumer and admin."""
    use: Use
    says: str = ""
    librdkafka: str = ""
    value: Value = field(default_factory=Text)
    aiokafka: str = ""
    accepted: tuple[str, ...] = ()
    not_by: str = ""
    """The clients among these that ignore the key although others use it."""

    def of(self, client: ClientKind) -> bool:
        """Whether a client of this kind has the key."""
        return client[0] in self.clients

    @property
    def of_workers(self) -> bool:
        """Whether a worker's own clients use it: to reach the brokers, to authenticate, or because aiokafka knows it.
        A refused key is never ignored."""
        reaches = self.name in ("bootstrap.servers", "client.dns.lookup") or self.name.startswith(SECURITY)
        return self.use == "refused" or (self.use == "used" and (reaches or bool(self.aiokafka)))

    def refuses(self, text: str) -> bool:
        """Whether a configuration with this value cannot be used."""
        return self.use == "refused" and not self.accepts(text)

    def passes_over(self, text: str, client: ClientKind) -> bool:
        """Whether this value has no effect on such a client, so that its author should be notified."""
        return (self.use == "ignored" or client[0] in self.not_by) and not self.accepts(text)

    def accepts(self, text: str) -> bool:
        """Whether a value describes keelman's own behaviour."""
        return text.strip().lower() in {word.lower() for word in self.accepted}
