"""The keys of Ohara's objects, (group, name): parses their three forms, checks, prints, and maps them
to our origins."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.gateway.ohara.wire.errors import bad_value
from keelman.gateway.ohara.wire.json_types import type_name

API = "ohara"
"""The API in the origins of resources created through it."""
DEFAULT_GROUP = "default"
OWN_PREFIX = "oh-"
"""The prefix of the generated own names of resources."""
MAX_NAMES = 5
"""The number of own names for one key: all but one may belong to clusters in deletion."""
LEGAL_WORD = r"[a-z0-9\.]{1,25}$"
_WORD = re.compile(r"[a-z0-9\.]{1,25}")


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """The key of an object of one kind."""

    group: str
    name: str

    def __str__(self) -> str:
        """Returns the form in messages."""
        return f'{{"group":"{self.group}","name":"{self.name}"}}'

    @property
    def json(self) -> dict[str, str]:
        """The form in answers."""
        return {"group": self.group, "name": self.name}

    @property
    def origin(self) -> Origin:
        """The origin that marks a resource of ours as this object."""
        return Origin(api=API, scope=self.group, key=self.name)


def is_word(text: str) -> bool:
    """Tells whether a text may be a group or a name."""
    return bool(_WORD.fullmatch(text))


def checked_word(text: str) -> str:
    """Returns a legal group or name. Raises OharaError for another text."""
    if not is_word(text):
        raise bad_value(f'the value "{text}" is not matched to {LEGAL_WORD}')
    return text


def checked_key(group: str, name: str) -> ObjectKey:
    """Returns the key of a checked group and name. Raises OharaError."""
    return ObjectKey(checked_word(group), checked_word(name))


def key_of(value: Any, field: str = "key") -> ObjectKey:
    """Parses a key from a JSON value: `{"group", "name"}`, `{"name"}` or a name. Raises OharaError; does not check the
    words, which follow other rules for nodes and files."""
    if isinstance(value, str):
        words: tuple[Any, Any] = (DEFAULT_GROUP, value)
    elif isinstance(value, dict):
        words = (value.get("group", DEFAULT_GROUP), value.get("name"))
        if not all(isinstance(word, str) for word in words):
            raise bad_value(
                f"{field}: an object key is a name, or an object with the string name and optionally the string group"
            )
    else:
        raise bad_value(f'the {field} must be JsObject type, but actual type is "{type_name(value)}"')
    for word, text in zip(("group", "name"), words, strict=True):
        if not text:
            raise bad_value(f'the value of "{word}" can\'t be empty string!!!')
    return ObjectKey(*words)


def key_of_origin(origin: Origin) -> ObjectKey | None:
    """Returns the key that a resource of ours was created with; None if it was created outside this API."""
    return ObjectKey(origin.scope, origin.key) if origin.api == API else None


def own_name(key: ObjectKey, number: int = 1) -> str:
    """Returns the own name of a resource that is created with a key: short, legal, and the same each time. A cluster
    gets the next number while a former cluster in deletion has the name."""
    digest = hashlib.sha256(f"{key.group}\0{key.name}".encode()).hexdigest()
    return f"{OWN_PREFIX}{digest[:12]}" + (f"-{number}" if number > 1 else "")


def shown_key(name: str, origin: Origin) -> ObjectKey | None:
    """Returns the key that a resource is shown with: its own, or group default and its name if it has no origin. None
    for a name that is illegal here, and for a resource of another API."""
    if origin.api:
        return key_of_origin(origin)
    return ObjectKey(DEFAULT_GROUP, name) if is_word(name) else None


def unshown_key(name: str) -> ObjectKey:
    """Returns the key for a resource of ours that is not shown, as its name is illegal here."""
    return ObjectKey(DEFAULT_GROUP, name)
