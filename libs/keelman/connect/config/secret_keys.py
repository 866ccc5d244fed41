"""Decides by their names which keys of a configuration hold secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from keelman.connect.config.references import references
from keelman.runtime.logs.redaction import HIDDEN

# The PASSWORD keys of Kafka's clients, bare or behind a prefix, and what everybody calls such things.
_CLIENTS = re.compile(
    r"(?:^|\.)(?:sasl\.jaas\.config|ssl\.keystore\.key|ssl\.keystore\.certificate\.chain|ssl\.truststore\.certificates"
    r"|basic\.auth\.user\.info)$"
)
_WORDS = re.compile(
    r"(?:^|[._-])(?:password|passwd|passphrase|secret|private[._-]?key|token|secret[._-](?:access[._-])?key)$"
    # What a client of a schema registry sends along: Authorization, X-Api-Key, Cookie.
    r"|(?:^|\.)request\.header\..*(?:auth|key|cookie|secret|token)"
)
_IN_JAAS = re.compile(r'(?i)[\w.]*(?:password|secret|token)\w*\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')
_IN_URL = re.compile(r"(?<=://)([^/?#\s,]*)(?=@)")
"""User and password before the host; a user alone may be a token."""


def is_secret_key(key: str) -> bool:
    """Whether a key of this name holds a secret, in a connector's or a worker's configuration."""
    lower = key.lower()
    return bool(_CLIENTS.search(lower) or _WORDS.search(lower))


def without_users(text: str) -> str:
    """The text with what stands before the host of each URL hidden, but references left as they are."""
    return text if "@" not in text or references(text) else _IN_URL.sub(HIDDEN, text)


def shown(config: Mapping[str, str]) -> dict[str, str]:
    """The configuration for people's eyes: literal secrets hidden, references as they are."""
    return {k: HIDDEN if is_secret_key(k) and v and not references(v) else without_users(v) for k, v in config.items()}


def literal_secrets(config: Mapping[str, str]) -> dict[str, str]:
    """The secrets that stand in a configuration itself, each with what is to be shown instead."""
    found: dict[str, str] = {}
    for key, text in config.items():
        if not text or references(text):
            continue
        if is_secret_key(key):
            found[text] = HIDDEN
            if key.lower().endswith("sasl.jaas.config"):
                found |= {quoted or plain: HIDDEN for quoted, plain in _IN_JAAS.findall(text)}
        elif "@" in text:
            for user in _IN_URL.findall(text):
                password = user.partition(":")[2]
                # With what is around it, since a short one by itself would be found in other words.
                found |= {f"//{user}@": f"//{HIDDEN}@", password: HIDDEN, unquote(password): HIDDEN}
    return found
