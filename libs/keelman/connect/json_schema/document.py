"""Parses JSON Schemas with all schemas that they refer to, and checks values against them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from keelman.connect.errors import DataError

if TYPE_CHECKING:
    import jsonschema_rs

_BASE = "json-schema:///"


@dataclass(frozen=True, slots=True)
class SchemaDocument:
    """A JSON Schema with all schemas that it refers to; nothing is fetched from anywhere."""

    tree: Any
    base: str
    registry: jsonschema_rs.Registry

    def validator(self) -> jsonschema_rs.Validator:
        """Returns a validator for values. Raises DataError for an invalid schema."""
        import jsonschema_rs  # noqa: PLC0415  14 MB that only those need who use it

        draft7 = not isinstance(self.tree, dict) or "$schema" not in self.tree
        make: Callable[..., Any] = jsonschema_rs.Draft7Validator if draft7 else jsonschema_rs.validator_for
        try:
            validator: jsonschema_rs.Validator = make(
                self.tree, registry=self.registry, retriever=_fetched, base_uri=self.base
            )
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise DataError(f"The JSON Schema is not sound: {first_line(error)}") from None
        return validator


def document(text: str, references: Mapping[str, str]) -> SchemaDocument:
    """Parses a schema; `references` are the texts of other schemas by their names in `$ref`. Raises DataError."""
    import jsonschema_rs  # noqa: PLC0415  14 MB that only those need who use it

    tree = _parsed(text, "The JSON Schema")
    own = tree.get("$id") if isinstance(tree, dict) else None
    base = urljoin(_BASE, own.removesuffix("#")) if isinstance(own, str) and not own.startswith("#") else _BASE
    named = {name: _parsed(reference, f"The JSON Schema {name}") for name, reference in references.items()}
    resources = {urljoin(start, name): inner for name, inner in named.items() for start in (_BASE, base)}
    resources.pop(base, None)
    try:
        registry = jsonschema_rs.Registry(
            [(base, tree), *resources.items()], draft=jsonschema_rs.Draft7, retriever=_fetched
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise DataError(f"The JSON Schema is not sound: {first_line(error)}") from None
    return SchemaDocument(tree, base, registry)


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{what} cannot be read: {first_line(error)}") from None


def _fetched(uri: str) -> Any:
    raise ValueError(f"{uri} is not among the references of the schema")


def first_line(error: Exception) -> str:
    """Returns the first line of the error's message."""
    return (str(error) or type(error).__name__).splitlines()[0][:500]
