"""Holds answers of the Ohara API to the document that is served at /v0/openapi.json."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs


class Schemas:
    """The schemas of an OpenAPI document's answers."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._components = {"components": document["components"]}
        self._paths = document["paths"]
        patterns = sorted(self._paths, key=lambda path: path.count("{"))
        self._patterns = [(re.compile(re.sub(r"\\\{\w+\\\}", "[^/]*", re.escape(p))), p) for p in patterns]
        self._validators: dict[str, Any] = {}

    def check(self, method: str, path: str, status: int, body: Any) -> None:
        """Asserts that this status is documented for this call, and that the JSON matches its schema."""
        about = f"{method} {path}: {status}"
        operation = self.operation(method, path)
        assert operation is not None or status == 404, f"{about}: the call is not documented"
        responses = operation["responses"] if operation else {"404": {"content": {"": {"schema": _UNKNOWN}}}}
        assert str(status) in responses, f"{about} is not documented"
        for content in responses[str(status)].get("content", {}).values():
            if content["schema"]:
                self._validate(content["schema"], body, about)

    def operation(self, method: str, path: str) -> dict[str, Any] | None:
        """The document's entry for a call; None if there is none."""
        for pattern, name in self._patterns:
            if pattern.fullmatch(path) and method.lower() in self._paths[name]:
                operation: dict[str, Any] = self._paths[name][method.lower()]
                return operation
        return None

    def _validate(self, schema: dict[str, Any], body: Any, about: str) -> None:
        validator = self._validators.get(repr(schema))
        if validator is None:
            validator = jsonschema_rs.Draft202012Validator(self._components | schema)
            self._validators[repr(schema)] = validator
        problems = [f"{'.'.join(map(str, e.instance_path))}: {e.message[:300]}" for e in validator.iter_errors(body)]
        assert not problems, f"{about}: {problems[:5]} in {str(body)[:1000]}"


_UNKNOWN = {"$ref": "#/components/schemas/UnknownApi"}
