"""Reads the users of Connect's REST extension for basic authentication and their passwords, from a file as in Connect.

Where the JAAS file is, Java gets from `-Djava.security.auth.login.config=FILE`; here `keelman.jaas.file` names it,
or, when that is not set, such an option in the environment's KAFKA_OPTS.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import javaproperties

from keelman.model.errors import InvalidArgument
from keelman.worker.config.java_options import java_option
from keelman.workers.properties.basic_auth import ENTRY, EXTENSIONS, FILE, BasicAuth, asks_for_passwords

MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
OPTION = "java.security.auth.login.config"
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\]|\\.)*)"|([{};=])|([^\s{};="]+)', re.DOTALL)


def read_basic_auth(raw: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> BasicAuth | None:
    """Returns the users that `rest.extension.classes` requires; None without it. Raises InvalidArgument, also for any
    other class."""
    if not asks_for_passwords(raw):
        return None
    location = raw.get(FILE, "") or java_option(OPTION, environment).lstrip("=")
    if not location:
        raise InvalidArgument(
            f"{FILE} is missing: {EXTENSIONS} needs a JAAS file with an entry {ENTRY}; set it to that file, or "
            f"KAFKA_OPTS to -D{OPTION}=FILE"
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


def _text(location: str, key: str) -> str:
    try:
        return Path(location).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise InvalidArgument(f"{key}: {location!r} cannot be read: {reason}") from None


def _entry(text: str, location: str) -> dict[str, str]:
    """Returns the options of the login module of our entry in a JAAS file."""
    words = list(_words(text))
    for at, word in enumerate(words[:-1]):
        if word == ENTRY and words[at + 1] == "{":
            end = words.index(";", at) if ";" in words[at:] else len(words)
            module = words[at + 2 : end]
            if module[:1] != [MODULE]:
                name = module[0] if module else "nothing"
                raise InvalidArgument(f"{FILE}: login module {name} in {location!r} is unknown: legal is {MODULE}")
            rest = module[2:]
            return {rest[i]: rest[i + 2] for i in range(0, len(rest) - 2, 3) if rest[i + 1] == "="}
    raise InvalidArgument(f"{FILE}: no entry {ENTRY} {{ ... }} in {location!r}")


def _words(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        quoted, symbol, word = match.groups()
        if quoted is not None:
            yield re.sub(r"\\(.)", r"\1", quoted)
        elif symbol or word:
            yield symbol or word
