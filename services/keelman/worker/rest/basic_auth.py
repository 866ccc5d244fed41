"""Connect's REST extension for basic authentication, with its login module: users and passwords from a file.

Where the JAAS file is, Java is told with `-Djava.security.auth.login.config=FILE`; here `keelman.jaas.file` names it,
or, when that is not set, such an option in the environment's KAFKA_OPTS.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from keelman.model.errors import InvalidArgument
from keelman.worker.rest.routes import exists

EXTENSIONS = "rest.extension.classes"
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
NAMES = (EXTENSION, EXTENSION.rpartition(".")[2], "BasicAuthSecurity")
ENTRY = "KafkaConnect"
FILE, OPTION = "keelman.jaas.file", "-Djava.security.auth.login.config="
REFUSED = "User cannot access the resource."
# What workers ask of each other is signed instead; the forms are Connect's.
INTERNAL = (
    ("POST", re.compile(r"/?connectors/([^/]+)/tasks/?")),
    ("PUT", re.compile(r"/?connectors/[^/]+/fence/?")),
)
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\]|\\.)*)"|([{};=])|([^\s{};="]+)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """The users of a worker and their passwords."""

    users: Mapping[str, str] = field(repr=False)

    def around(self, routed: Starlette) -> ASGIApp:
        """The application for these users only. Paths and methods that do not exist get their own answers, as there."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if not self.allows(scope) and exists(routed, scope):
                headers = {"WWW-Authenticate": f'Basic realm="{ENTRY}"'}
                answer = Response(REFUSED, 401, headers, media_type="application/json")
                await answer(scope, receive, send)
            else:
                await routed(scope, receive, send)

        return guarded

    def allows(self, scope: Scope) -> bool:
        """Whether the request is one of a user's, or internal."""
        path, method = scope["path"], scope["method"]
        if any(method == wanted and form.fullmatch(path) for wanted, form in INTERNAL):
            return True
        scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            name, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return False
        known = hmac.compare_digest(self.users.get(name, "").encode(), password.encode())
        return bool(colon) and name in self.users and known


def read_basic_auth(raw: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> BasicAuth | None:
    """What `rest.extension.classes` asks for; None without it. Raises InvalidArgument, also for any other class."""
    classes = [one.strip() for one in raw.get(EXTENSIONS, "").split(",") if one.strip()]
    for one in classes:
        if one not in NAMES:
            raise InvalidArgument.of(EXTENSIONS, one, f"{EXTENSION}; other Java classes cannot be loaded")
    if not classes:
        return None
    location = raw.get(FILE, "") or _from_options(environment.get("KAFKA_OPTS", ""))
    if not location:
        raise InvalidArgument(
            f"{FILE} is missing: {EXTENSIONS} needs a JAAS file with an entry {ENTRY}; set it to that file, or "
            f"KAFKA_OPTS to {OPTION}FILE"
        )
    options = _entry(_text(location, FILE), location)
    if not options.get("file"):
        raise InvalidArgument(f'{FILE}: the entry {ENTRY} of {location!r} has no file="..." of users and passwords')
    try:
        users = javaproperties.loads(_text(options["file"], f"file of {ENTRY} in {location!r}"))
    except javaproperties.InvalidUEscapeError as error:
        raise InvalidArgument(f"file of {ENTRY} in {location!r}: not a .properties file: {error}") from None
    if not users:
        raise InvalidArgument(f"file of {ENTRY} in {location!r}: {options['file']!r} names no user")
    return BasicAuth(users)


def _from_options(options: str) -> str:
    try:
        words = shlex.split(options)
    except ValueError:
        return ""
    return next((w.removeprefix(OPTION).lstrip("=") for w in words if w.startswith(OPTION)), "")


def _text(location: str, key: str) -> str:
    try:
        return Path(location).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidArgument(f"{key}: {location!r} cannot be read: {reason}") from None


def _entry(text: str, location: str) -> dict[str, str]:
    """The options of the login module of our entry in a JAAS file."""
    words = list(_words(text))
    for at, word in enumerate(words[:-1]):
        if word == ENTRY and words[at + 1] == "{":
            end = words.index(";", at) if ";" in words[at:] else len(words)
            module = words[at + 2 : end]
            if module[:1] != [MODULE]:
                name = module[0] if module else "nothing"
                raise InvalidArgument(f"{FILE}: login module {name} in {location!r} is not known here: {MODULE} is")
            rest = module[2:]
            return {rest[i]: rest[i + 2] for i in range(0, len(rest) - 2, 3) if rest[i + 1] == "="}
    raise InvalidArgument(f"{FILE}: there is no entry {ENTRY} {{ ... }} in {location!r}")


def _words(text: str) -> Iterator[str]:
    for found in _TOKEN.finditer(text):
        quoted, symbol, word = found.groups()
        if quoted is not None:
            yield re.sub(r"\\(.)", r"\1", quoted)
        elif symbol or word:
            yield symbol or word
