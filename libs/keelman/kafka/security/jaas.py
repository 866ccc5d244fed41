"""Reads `sasl.jaas.config` as Java's clients read it (their JaasConfig, on a StreamTokenizer).

tests/recorded/data/clients.json holds Java's results for a number of texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from keelman.model.errors import InvalidArgument

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
ALLOWED = (PLAIN, SCRAM, OAUTHBEARER)
_KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
_FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_KEY = "sasl.jaas.config"
_LEGAL = (
    'legal is one login module with its options, MODULE required OPTION="VALUE" OPTION="VALUE"; where MODULE is '
    f"{PLAIN} (PLAIN) or {SCRAM} (SCRAM-SHA-256, SCRAM-SHA-512), both with username and password, "
    f"or {OAUTHBEARER} (OAUTHBEARER)"
)

Token: TypeAlias = tuple[str, str | None]
"""A kind (`word`, `number` or the character itself) and a text; numbers and single characters have none."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """Class, flag and options. The options hold secrets."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


def parse(text: str) -> LoginModule:
    """Returns the one login module of a `sasl.jaas.config`. Raises InvalidArgument with Java's message and the legal
    values, never with a secret; a module outside `ALLOWED` is refused before anything is done with it."""
    modules = list(_modules(_tokens(text)))
    if not modules:
        raise _illegal("Login module not specified in JAAS config")
    for module in modules:
        if module.name not in ALLOWED:
            raise _illegal(_not_allowed(module.name))
    if len(modules) > 1:
        raise _illegal(f"JAAS config property contains {len(modules)} login modules, should be 1 module")
    return modules[0]


def _not_allowed(name: str) -> str:
    if name == _KERBEROS:
        return f"{name}: Kerberos (GSSAPI) is not supported"
    return f"{name} is not allowed"


def _illegal(reason: str) -> InvalidArgument:
    return InvalidArgument(f"{_KEY}: {reason}; {_LEGAL}", metadata={"field": _KEY})


def _modules(tokens: Iterator[Token]) -> Iterator[LoginModule]:
    for _kind, name in tokens:
        flag = next(tokens, None)
        if flag is None:
            raise _illegal("Login module control flag not specified in JAAS config")
        if flag[1] is None:
            raise _illegal("Login module control flag is not available in the JAAS config")
        if flag[1].upper() not in _FLAGS:
            raise _illegal(f"Invalid login module control flag '{flag[1]}' in JAAS config")
        yield LoginModule(name or "null", flag[1].lower(), dict(_options(tokens)))


def _options(tokens: Iterator[Token]) -> Iterator[tuple[str, str]]:
    for kind, key in tokens:
        if kind == ";":
            return
        equals, value = next(tokens, None), None
        if equals is not None and equals[0] == "=":
            value = next(tokens, (None, None))[1]
        if value is None:
            raise _illegal(f"Value not specified for key '{'null' if key is None else key}' in JAAS config")
        yield key or "null", value
    raise _illegal("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[Token]:
    """Yields a StreamTokenizer's tokens: any slash begins a comment; words may hold dots and digits."""
    at = 0
    while at < len(text):
        char = text[at]
        if char <= " ":
            at += 1
        elif char == "/":
            block = text.startswith("/*", at)
            end = text.find("*/" if block else "\n", at + (2 if block else 1))
            at = len(text) if end < 0 else end + (2 if block else 1)
        elif char in "\"'":
            value, at = _quoted(text, at)
            yield "word", value
        elif char.isdigit() or (char in "-." and text[at + 1 : at + 2].isdigit()):
            at = _end(text, at + 1, "0123456789.")
            yield "number", None
        elif _is_letter(char):
            end = _end(text, at)
            yield "word", text[at:end]
            at = end
        else:
            yield char, None
            at += 1


def _is_letter(char: str) -> bool:
    return (char.isascii() and char.isalpha()) or char in "_$" or ord(char) >= 160


def _end(text: str, at: int, of: str = "") -> int:
    """Returns the end of the word, or of the run of the characters `of`."""
    while at < len(text) and (text[at] in of if of else _is_letter(text[at]) or text[at] in "0123456789.-"):
        at += 1
    return at


def _quoted(text: str, at: int) -> tuple[str, int]:
    """Returns the quoted text without escapes, and its end: the closing quote or the end of the line."""
    mark, chars = text[at], []
    at += 1
    while at < len(text) and text[at] != mark and text[at] not in "\r\n":
        if text[at] != "\\" or at + 1 == len(text):
            chars.append(text[at])
            at += 1
        elif text[at + 1] in "01234567":
            end = _end(text[: at + (4 if text[at + 1] <= "3" else 3)], at + 1, "01234567")
            chars.append(chr(int(text[at + 1 : end], 8)))
            at = end
        else:
            chars.append(_ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2
    return "".join(chars), at + (text[at : at + 1] == mark)
