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
# Java passes over a protocol in front, `PLAINTEXT://host:9092`, and so do we: the other libraries do not.
_SERVER = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?(\[?[0-9a-zA-Z\-%._:]+\]?):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number, held within what the other library takes; `like` are values that mean something else there."""

    least: int
    most: int
    per: int = 1
    like: Mapping[int, int] = field(default_factory=dict)

    def of(self, key: str, text: str) -> str:
        """The other library's text. Raises InvalidArgument for what is no number."""
        try:
            value = int(text)
        except ValueError:
            raise InvalidArgument.of(key, text, "a whole number") from None
        return str(self.like.get(value, min(max(value // self.per, self.least), self.most)))


@dataclass(frozen=True, slots=True)
class Words:
    """One of a few words, in any case."""

    legal: Mapping[str, str]

    def of(self, key: str, text: str) -> str:
        """The other library's word. Raises InvalidArgument that names those there are."""
        found = self.legal.get(text.lower())
        if found is None:
            raise InvalidArgument.of(key, text, "one of " + ", ".join(self.legal))
        return found


@dataclass(frozen=True, slots=True)
class Text:
    """Any text, the same there."""

    def of(self, key: str, text: str) -> str:
        """The text itself."""
        return text


@dataclass(frozen=True, slots=True)
class Servers:
    """Addresses of brokers."""

    def of(self, key: str, text: str) -> str:
        """host:port, comma-separated. Raises InvalidArgument for the first that is none."""
        given = [one for one in map(str.strip, text.split(",")) if one] or [text]
        return ",".join(self.address(key, one) for one in given)

    def address(self, key: str, text: str) -> str:
        """One of them. Raises InvalidArgument."""
        found = _SERVER.fullmatch(text)
        if found is None or not 0 < int(found[2]) < 65536:
            raise InvalidArgument.of(key, text, HOST_AND_PORT)
        return f"{found[1]}:{found[2]}"


@dataclass(frozen=True, slots=True)
class Classes:
    """A list of Java classes of one package, by their simple or whole names."""

    package: str
    legal: Mapping[str, str]

    def names(self, key: str, text: str) -> list[str]:
        """Their simple names, each once. Raises InvalidArgument for a class that is not known."""
        given = [part.strip() for part in text.split(",") if part.strip()]
        names = list(dict.fromkeys(part.removeprefix(f"{self.package}.") for part in given))
        if any(name not in self.legal for name in names):
            raise InvalidArgument.of(key, text, f"one or more of {', '.join(self.legal)} of {self.package}")
        return names

    def of(self, key: str, text: str) -> str:
        """The other library's names, each once. Raises InvalidArgument for a class that is not known."""
        return ",".join(dict.fromkeys(self.legal[name] for name in self.names(key, text)))


Value: TypeAlias = Number | Words | Text | Servers | Classes


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One property of Java's clients.

    `librdkafka` and `aiokafka` are its names there, empty where there is none; `says` is for a reader what our own code
    makes of it, or why it is ignored or refused. `accepted` are the values of a key that is ignored or refused which
    say what is done anyway: they are neither noted nor refused.
    """

    name: str
    clients: str
    """Of which clients: p, c and a, for producer, consumer and admin."""
    use: Use
    says: str = ""
    librdkafka: str = ""
    value: Value = field(default_factory=Text)
    aiokafka: str = ""
    accepted: tuple[str, ...] = ()
    not_by: str = ""
    """Of those clients, the ones that pass it over although it is used by others."""

    def of(self, client: ClientKind) -> bool:
        """Whether such a client has it."""
        return client[0] in self.clients

    @property
    def of_workers(self) -> bool:
        """Whether a worker's own clients heed it: how they reach the brokers, who they are to them, and the rest that
        aiokafka knows. What is refused is never passed over."""
        reaches = self.name in ("bootstrap.servers", "client.dns.lookup") or self.name.startswith(SECURITY)
        return self.use == "refused" or (self.use == "used" and (reaches or bool(self.aiokafka)))

    def refuses(self, text: str) -> bool:
        """Whether a configuration with this value cannot be used."""
        return self.use == "refused" and not self.accepts(text)

    def passes_over(self, text: str, client: ClientKind) -> bool:
        """Whether this value has no effect on such a client, and whoever gives it should hear so."""
        return (self.use == "ignored" or client[0] in self.not_by) and not self.accepts(text)

    def accepts(self, text: str) -> bool:
        """Whether a value says what is done anyway."""
        return text.strip().lower() in {one.lower() for one in self.accepted}
