"""The token by which a host joins, as people pass it on: its name, its secret, and the CA that the host may trust."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from keelman.model.errors import InvalidArgument

PREFIX = "kj1"
_FORM = re.compile(r"kj1\.([a-z0-9]{4,32})\.([A-Za-z0-9_-]{16,128})\.([0-9a-f]{64})")


class JoinRole(StrEnum):
    """The role in which a host joins."""

    NODE = "node"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class JoinSecret:
    """A token taken apart. `authority` is the SHA-256 of the CA's certificate (DER), in hex."""

    name: str
    secret: str = field(repr=False)
    authority: str

    @property
    def text(self) -> str:
        """The token as people pass it on."""
        return f"{PREFIX}.{self.name}.{self.secret}.{self.authority}"


def parsed_token(text: str) -> JoinSecret:
    """Parses a token. Raises InvalidArgument, which does not show the token, for an illegal one."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidArgument.of("token", "[hidden]", f"{PREFIX}.NAME.SECRET.AUTHORITY, whole, as it was printed")
    return JoinSecret(*match.groups())


def token_and_address(text: str) -> tuple[JoinSecret, str]:
    """Returns token and gateway of TOKEN@host:port. Raises InvalidArgument."""
    token, at, address = text.strip().partition("@")
    host, _, port = address.rpartition(":")
    if not at or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidArgument.of("token", f"[hidden]{at}{address}", "TOKEN@host:port, with the address of a gateway")
    return parsed_token(token), address
