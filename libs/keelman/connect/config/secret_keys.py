"""Finds the secrets of a configuration, by the names of its keys and by the content of its values. Pure.

Each value has a displayed text, `shown_value`. It equals the value if nothing in it is secret; a value is secret if the
text differs. References to values that are kept elsewhere are displayed: they are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from keelman.connect.config.references import with_references
from keelman.model.errors import InvalidArgument
from keelman.runtime.logs.redaction import HIDDEN

# The PASSWORD keys of Kafka's clients and brokers, bare or behind a prefix, and common names of such keys.
_CLIENTS = re.compile(
    r"(?:^|\.)(?:sasl\.jaas\.config|ssl\.keystore\.key|ssl\.keystore\.certificate\.chain|ssl\.truststore\.certificates"
    r"|basic\.auth\.user\.info)$"
)
_WORDS = re.compile(
    r"(?:password|passwd|passphrase|passcode|secrets?|token|secret[._-]?id"
    r"|(?:^|[._-])(?:pass|pwd|jwt|credentials?(?:[._-]json)?|authorization|cookie|connection[._-]string|sas[._-]url"
    r"|(?:private|api|access|account|shared|master|signing|encryption|secret|sas|license|hmac|subscription|session"
    r"|integration)(?:[._-](?:access|secret))?[._-]?keys?))"
    r"(?:[._-]?\d+)?$"
)
# Headers that a client of a schema registry sends: Authorization, X-Api-Key, Cookie.
_HEADER, _OF_HEADERS = re.compile(r"(?:^|\.)request\.header\."), re.compile("auth|key|cookie|secret|token")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLACE = "\0"  # replaces a reference during the search in a text; no configuration contains it
_IN_JAAS = re.compile(
    r"(?i)(?<!\w)(?=\w*?(?:password|secret|token|passphrase))\w++\s*+=\s*+"  # each word is read once
    r"(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;\"']+))"
)
_IN_URL = re.compile(r"(?<=://)([^/?\s,]*)(?=@)")
"""User and password before the host; a user alone may be a token."""
_IN_QUERY = re.compile(
    r"(?i)((?<=[?&;])[\w.]*(?:password|passwd|pwd|passphrase|secret|token|(?:account|access)key)="
    r"|\"[\w.-]*(?:password|passwd|passphrase|secret|token)\"\s*:\s*\")((?:[^&;\s\"\\]|\\.)+)"
)
"""As in a JDBC URL, a connection string or a JSON text."""
_IN_WORDS = re.compile(
    r"(?i)(\b(?:\w*[._-])?(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|jwt|bearer|authorization"
    r"|(?:api|access|private|account|sas)[ ._-]?key)s?\b\W{0,3}(?:\b(?:is|was)\b)?\s*[:=]?\s*[\"']?)([^\s\"',;]+)"
)
"""As in a comment: the word behind a word for a secret."""
_HIDDEN_PART = re.compile(r"(?:^|://|=|\")" + re.escape(HIDDEN) + r"(?:$|[@&;\s\"])")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


@lru_cache(maxsize=10_000)
def is_secret_key(key: str) -> bool:
    """Whether a key of this name holds a secret, in a configuration of a connector, a worker, a broker or a client."""
    lower = _CAMEL.sub(".", key).lower()
    if _CLIENTS.search(lower) or _WORDS.search(lower):
        return True
    header = _HEADER.search(lower)
    return header is not None and _OF_HEADERS.search(lower, header.end()) is not None


def shown_value(key: str, text: str) -> str:
    """Returns a value for display: hidden, with its secret parts hidden, or unchanged."""
    if is_secret_key(key):
        return HIDDEN if text and _has_literal(key.lower(), _places(text)) else text
    if _PRIVATE_KEY.search(text) or ("LoginModule" in text and _has_literal("sasl.jaas.config", _places(text))):
        return HIDDEN
    return without_users(text)


def without_users(text: str) -> str:
    """Returns the text with users and passwords in URLs and named passwords hidden, but with references unchanged."""
    if "@" not in text and "=" not in text and '":' not in text and '" :' not in text:
        return text
    matches: list[str] = []

    def noted(written: str, _: object) -> str:
        matches.append(written)
        return _PLACE

    hidden = _IN_URL.sub(lambda match: _shown_user(match[0]), with_references(text, noted))
    hidden = _IN_QUERY.sub(lambda match: match[1] + (HIDDEN if match[2].strip(_PLACE) else match[2]), hidden)
    return re.sub(_PLACE, lambda _: matches.pop(0), hidden) if hidden.count(_PLACE) == len(matches) else HIDDEN


def without_words(text: str) -> str:
    """Returns a text that people wrote, such as a comment, with the word behind each word for a secret hidden: rather
    one word too many than a password."""
    return _IN_WORDS.sub(lambda match: match[1] + (HIDDEN if _places(match[2]).strip(_PLACE) else match[2]), text)


def shown(config: Mapping[str, str]) -> dict[str, str]:
    """Returns the configuration for display: literal secrets hidden, references unchanged."""
    return {key: shown_value(key, text) for key, text in config.items()}


def shown_json(value: Any, key: str = "") -> Any:
    """Returns a JSON value for display. All texts and numbers below a key that holds a secret are hidden."""
    if isinstance(value, str):  # as most are
        return shown_value(key, value)
    if isinstance(value, Mapping):
        return {name: shown_json(value, key if is_secret_key(key) else str(name)) for name, value in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown_json(item, key) for item in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return HIDDEN if is_number and is_secret_key(key) else value


def kept_values(field: str, submitted: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """Replaces hidden values in a submitted configuration with the stored ones.

    Raises InvalidArgument, naming the key, for a hidden value without a stored one.
    """
    return {key: _kept(f"{field}.{key}", key, text, stored.get(key)) for key, text in sorted(submitted.items())}


def kept_json(field: str, submitted: Any, stored: Any, key: str = "") -> Any:
    """Does the same for a JSON value; matches the items of lists by position."""
    if isinstance(submitted, Mapping):
        before = stored if isinstance(stored, Mapping) else {}
        return {
            name: kept_json(f"{field}.{name}", value, before.get(name), key if is_secret_key(key) else str(name))
            for name, value in submitted.items()
        }
    if isinstance(submitted, (list, tuple)):
        there = (
            stored if isinstance(stored, (list, tuple)) and len(stored) == len(submitted) else [None] * len(submitted)
        )
        return [kept_json(f"{field}[{n}]", *pair, key) for n, pair in enumerate(zip(submitted, there, strict=True))]
    return _kept(field, key, submitted, stored) if isinstance(submitted, str) else submitted


def _kept(field: str, key: str, submitted: str, stored: Any) -> Any:
    if HIDDEN not in submitted:
        return submitted
    if stored is not None and shown_json(stored, key) == submitted:
        return stored
    if is_secret_key(key) or _HIDDEN_PART.search(submitted):
        raise InvalidArgument.of(
            field,
            shown_value(key, submitted),
            "the value itself: a hidden value means the stored one, and none is stored here",
        )
    return submitted


def literal_secrets(config: Mapping[str, str]) -> dict[str, str]:
    """Returns the literal secrets of a configuration, each with the text to display instead."""
    secrets: dict[str, str] = {}
    for key, text in config.items():
        if not text or shown_value(key, text) == text:
            continue
        if shown_value(key, text) == HIDDEN:
            secrets[text] = HIDDEN
            if "LoginModule" in text or key.lower().endswith("sasl.jaas.config"):
                secrets |= {secret: HIDDEN for match in _IN_JAAS.findall(text) if (secret := "".join(match))}
        for user in _IN_URL.findall(text):
            password = user.partition(":")[2]
            # With the characters around it, since a short one alone would be found in other words.
            secrets |= {f"//{user}@": f"//{HIDDEN}@", password: HIDDEN, unquote(password): HIDDEN}
        secrets |= {part: HIDDEN for _, value in _IN_QUERY.findall(text) for part in (value, unquote(value))}
    return {secret: instead for secret, instead in secrets.items() if _places(secret).strip(_PLACE)}


def _places(text: str) -> str:
    return with_references(text, lambda _written, _reference: _PLACE)


def _has_literal(key: str, text: str) -> bool:
    """Whether a secret's value contains more than references, which `text` has taken out."""
    if _PLACE not in text:
        return True
    if key.endswith("sasl.jaas.config") and "LoginModule" in text:
        return any("".join(match).strip(_PLACE) for match in _IN_JAAS.findall(text))
    if key.endswith("user.info"):
        return bool(text.rpartition(":")[2].strip(_PLACE))
    return bool(text.strip(_PLACE + " \t\r\n"))


def _shown_user(user: str) -> str:
    return HIDDEN if (user.partition(":")[2] or user).strip(_PLACE) else user
