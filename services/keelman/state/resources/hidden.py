"""Keeps secrets out of answers and events, and accepts hidden values back. In memory specs are complete."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from keelman.connect.config.secret_keys import kept_json, kept_values, literal_secrets, shown, shown_json
from keelman.runtime.logs.redaction import REDACTOR

S = TypeVar("S")
PROPERTIES = ("properties", "client_properties", "reports_client_properties", "spark_client_properties", "config")
"""Fields of specs that are maps of properties."""
TAGS = "tags"
"""A key in the extra of a resource: another API's labels. Like labels they are users' own words, and no secrets."""


def shown_spec(spec: S) -> S:
    """Returns a spec of any noun, or a resource without one, as users and events see it: secrets hidden."""
    any_spec: Any = spec
    changes: dict[str, Any] = {name: shown(values) for name, values in _properties(spec).items()}
    if (extra := _extra(spec)) is not None:
        changes["annotations"] = dataclasses.replace(any_spec.annotations, extra=shown_extra(extra))
    return dataclasses.replace(any_spec, **changes) if changes else spec


def kept_spec(submitted: S, stored: S | None, kind: str = "") -> S:
    """Returns the submitted spec with stored values in place of hidden ones. `kind` as in spec.managed.properties.

    From now on this process shows none of its secrets in logs and answers. Raises InvalidArgument naming the field of a
    hidden value that is not stored.
    """
    sent: Any = submitted
    stored_properties = {} if stored is None else _properties(stored)
    changes: dict[str, Any] = {
        name: kept_values(".".join(filter(None, ("spec", kind, name))), values, stored_properties.get(name, {}))
        for name, values in _properties(submitted).items()
    }
    for values in changes.values():
        REDACTOR.add(literal_secrets(values), passing=True)
    if (extra := _extra(submitted)) is not None:
        extra_to_keep = kept_extra("spec.extra", extra, None if stored is None else _extra(stored))
        changes["annotations"] = dataclasses.replace(sent.annotations, extra=extra_to_keep)
    return dataclasses.replace(sent, **changes) if changes else submitted


def shown_extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an API's extra of a resource as users and events see it: secrets hidden, but tags as they are."""
    return {key: value if key == TAGS else shown_json(value, key) for key, value in extra.items()}


def kept_extra(field: str, submitted: Mapping[str, Any], stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """Does as `kept_spec` for an API's extra of a resource."""
    rest = {key: value for key, value in submitted.items() if key != TAGS}
    merged: dict[str, Any] = kept_json(field, rest, stored)
    return merged | {key: value for key, value in submitted.items() if key == TAGS}


def _properties(spec: object) -> dict[str, Mapping[str, str]]:
    return {name: values for name in PROPERTIES if (values := getattr(spec, name, None))}


def _extra(spec: object) -> Mapping[str, Any] | None:
    extra: Mapping[str, Any] | None = getattr(getattr(spec, "annotations", None), "extra", None)
    return extra
