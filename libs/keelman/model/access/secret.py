"""Secrets: values that configurations refer to, and that are never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from keelman.model.annotations import NO_ANNOTATIONS, Annotations
from keelman.model.errors import InvalidArgument
from keelman.model.resource import Resource

MAX_BYTES, MAX_KEYS, MAX_KEY = 64 << 10, 1000, 255
_NAME = re.compile(r"[A-Za-z0-9/_+=.@-]{1,255}")
_KEY = re.compile(rf"[^\x00-\x1f\x7f:}}]{{1,{MAX_KEY}}}")


@dataclass(frozen=True, slots=True)
class Secret(Resource):
    """Values by key. Times are aware UTC; `etag` changes with every change."""

    NOUN: ClassVar[str] = "secret"

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    annotations: Annotations = NO_ANNOTATIONS
    etag: str = ""


def checked_secret_name(field_: str, name: str) -> str:
    """Returns the name. Raises InvalidArgument for a name that no secret can have."""
    if not _NAME.fullmatch(name):
        legal = "1 to 255 letters, digits, '/', '_', '+', '=', '.', '@' or '-'"
        raise InvalidArgument.of(field_, name[:255], legal)
    return name


def checked_values(field_: str, values: Mapping[str, str]) -> dict[str, str]:
    """Returns the values. Raises InvalidArgument for values that no secret can have; no value is in its message."""
    if not 1 <= len(values) <= MAX_KEYS:
        raise InvalidArgument.of(field_, f"{len(values)} values", f"1 to {MAX_KEYS} of them")
    for key in values:
        if not _KEY.fullmatch(key):
            legal = f"1 to {MAX_KEY} characters, none of them a control, ':' or '}}'"
            raise InvalidArgument.of(f"{field_} (key)", key[:MAX_KEY], legal)
    size = sum(
        len(key.encode(errors="surrogatepass")) + len(value.encode(errors="surrogatepass"))
        for key, value in values.items()
    )
    if size > MAX_BYTES:
        raise InvalidArgument.of(field_, f"{size} bytes", f"at most {MAX_BYTES} bytes with their keys")
    return dict(values)
