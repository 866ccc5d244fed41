"""Connect's transforms and predicates, by the names of its classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from keelman.connect.transforms.base import PACKAGE, Predicate, Transform
from keelman.connect.transforms.cast import Cast
from keelman.connect.transforms.fields import HoistField, ReplaceField
from keelman.connect.transforms.flatten import Flatten
from keelman.connect.transforms.headers import DropHeaders, HeaderFrom, InsertHeader
from keelman.connect.transforms.insert import InsertField
from keelman.connect.transforms.mask import MaskField
from keelman.connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from keelman.connect.transforms.routing import Filter, RegexRouter, SetSchemaMetadata
from keelman.connect.transforms.structure import ExtractField, ValueToKey
from keelman.connect.transforms.times import TimestampConverter, TimestampRouter

__all__ = ["PREDICATES", "TRANSFORMS", "Predicate", "Transform"]

_ALL: tuple[type[Transform], ...] = (
    Cast,
    DropHeaders,
    ExtractField,
    Filter,
    Flatten,
    HeaderFrom,
    HoistField,
    InsertField,
    InsertHeader,
    MaskField,
    RegexRouter,
    ReplaceField,
    SetSchemaMetadata,
    TimestampConverter,
    TimestampRouter,
    ValueToKey,
)
TRANSFORMS: Mapping[str, Callable[[Mapping[str, str]], Transform]] = {
    f"{PACKAGE}{kind.name}{'$' if part else ''}{part}": partial(kind, part=part) for kind in _ALL for part in kind.parts
}
"""Transforms by the full name of the class; `$Key` and `$Value` are separate classes. Raise ConfigValueError."""
PREDICATES: Mapping[str, type[Predicate]] = {
    f"{PACKAGE}predicates.{kind.name}": kind for kind in (HasHeaderKey, RecordIsTombstone, TopicNameMatches)
}
"""Predicates by the full name of the class."""
