"""Marks enums and unions in the form that all kinds of schemas share (`generalized.sum.type.support`).

https://docs.confluent.io/platform/current/schema-registry/connect.html
"""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.schema import Schema

ANY_ENUM, ANY_UNION = (f"org.apache.kafka.connect.data.{word}" for word in ("Enum", "Union"))
"""Parameters of schemas that were enums and unions."""
ANY_UNION_NAME, ANY_UNION_FIELD = "connect_union_", "connect_union_field_"
"""The beginnings of the names of structs for unions, and of their fields."""


def enum_key(parameters: Mapping[str, str], own: str, *, general: bool) -> str | None:
    """Returns the parameter that marks a schema as an enum: the shared one if `general`, else the kind's own; None
    for no enum."""
    key = ANY_ENUM if general and ANY_ENUM in parameters else own
    return key if key in parameters else None


def is_any_union(schema: Schema) -> bool:
    """Whether a struct was a union of any kind of schema."""
    return any(key == ANY_UNION for key, _ in schema.parameters)
