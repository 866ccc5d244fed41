"""What a row of the table of client properties is made of: a key, its use here, and how its value reads elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from keelman.model.errors import InvalidArgument

Client = Literal["producer", "consumer", "admin"]
Use = Literal["used", "ignored", "refused"]


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
class Classes:
    """A list of Java classes, by their simple names."""

    legal: Mapping[str, str]

    def of(self, key: str, text: str) -> str:
        """The other library's names, each once. Raises InvalidArgument for a class that is not known."""
        names = [part.strip().rpartition(".")[2] for part in text.split(",") if part.strip()]
        for name in names:
            if name not in self.legal:
                raise InvalidArgument.of(key, text, "one or more of " + ", ".join(self.legal))
        return ",".join(dict.fromkeys(self.legal[name] for name in names))


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One property of Java's clients.

    `librdkafka` and `aiokafka` are its names there, empty where there is none; `says` tells a reader what our own code
    makes of it, or why it is ignored or refused. `accepted` are values that do no harm although the key is refused.
    """

    name: str
    clients: str
    """Of which clients: p, c and a, for producer, consumer and admin."""
    use: Use
    says: str = ""
    librdkafka: str = ""
    value: Number | Words | Text | Classes = field(default_factory=Text)
    aiokafka: str = ""
    accepted: tuple[str, ...] = ()

    def of(self, client: Client) -> bool:
        """Whether such a client has it."""
        return client[0] in self.clients

    def refuses(self, text: str) -> bool:
        """Whether a configuration with this value cannot be used."""
        return self.use == "refused" and text.strip().lower() not in {one.lower() for one in self.accepted}
