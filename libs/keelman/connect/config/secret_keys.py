"""Which keys of a configuration hold secrets, going by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from keelman.connect.config.references import references
from keelman.runtime.redaction import HIDDEN

# The PASSWORD keys of Kafka's clients, bare or behind a prefix, and what everybody calls such things.
_CLIENTS = re.compile(
    r"(?:^|\.)(?:sasl\.jaas\.config|ssl\.keystore\.key|ssl\.keystore\.certificate\.chain|ssl\.truststore\.certificates"
    r"|basic\.auth\.user\.info)$"
)
_WORDS = re.compile(
    r"(?:^|[._-])(?:password|passwd|passphrase|secret|private[._-]?key|token|secret[._-](?:access[._-])?key)$"
)
_IN_JAAS = re.compile(r'(?i)[\w.]*(?:password|secret|token)\w*\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


def is_secret_key(key: str) -> bool:
    """Whether a key of this name holds a secret, in a connector's or a worker's configuration."""
    lower = key.lower()
    return bool(_CLIENTS.search(lower) or _WORDS.search(lower))


def shown(config: Mapping[str, str]) -> dict[str, str]:
    """The configuration for people's eyes: literal secrets hidden, references as they are."""
    return {k: HIDDEN if is_secret_key(k) and v and not references(v) else v for k, v in config.items()}


def literal_secrets(config: Mapping[str, str]) -> dict[str, str]:
    """The secrets that stand in a configuration itself, each with what is to be shown instead."""
    found: dict[str, str] = {}
    for key, text in config.items():
        if text and is_secret_key(key) and not references(text):
            found[text] = HIDDEN
            if key.lower().endswith("sasl.jaas.config"):
                found |= {quoted or plain: HIDDEN for quoted, plain in _IN_JAAS.findall(text)}
    return found
