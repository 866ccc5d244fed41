"""Shares the schema registries of a process: caches their answers for all tasks that name the same registry."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from keelman.connect.errors import ConfigValueError
from keelman.connect.registry.interface import (
    INCOMPATIBLE,
    Reference,
    Registered,
    Registry,
    RegistryError,
    RegistryRefused,
    RegistryUnavailable,
    SchemaKind,
    SchemaText,
)
from keelman.engine.records.registry_http import URL, RegistryHttp, RegistryNo, client_properties
from keelman.model.errors import FailedPrecondition, InvalidArgument, KeelmanError, Unauthenticated, Unavailable

MAX_REGISTRIES = 64
MAX_KEPT = 10_000
NO_SECONDS = 1.0
"""The time for which a negative answer is cached: bad records with an unknown id cause no more requests than that."""
AWAY_SECONDS = 0.5
"""The time for which a registry without an answer is taken to be away, so that many tasks do not all wait for it."""

Answer = TypeVar("Answer")
_lock = threading.Lock()
_registries: OrderedDict[tuple[tuple[str, str], ...], CachedRegistry] = OrderedDict()


def open_registry(config: Mapping[str, str]) -> Registry:
    """Returns the registry that a converter's configuration names. Opens no connection. Raises ConfigValueError."""
    properties = client_properties(config)
    name = tuple(sorted(properties.items()))
    with _lock:
        registry = _registries.get(name)
        if registry is None:
            try:
                registry = CachedRegistry(RegistryHttp(properties))
            except InvalidArgument as error:
                raise ConfigValueError(URL, None, whole=error.message) from None
            if len(_registries) >= MAX_REGISTRIES:
                _registries.popitem(last=False)
            _registries[name] = registry
        _registries.move_to_end(name)
        return registry


class CachedRegistry:
    """A Registry over HTTP. Ids and versions never change their meaning, so they stay cached."""

    def __init__(self, http: RegistryHttp) -> None:
        self._http = http
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._noes: dict[Hashable, tuple[float, RegistryError]] = {}
        self._newest: dict[str, tuple[float, Registered]] = {}
        self._away: tuple[float, str] = (0.0, "")

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """Implements `Registry.register`."""

        def ask() -> int:
            path = f"/subjects/{_part(subject)}/versions?normalize={_flag(normalize)}"
            number = _number(self._ask("POST", path, _body(schema)), "id")
            self._newest.pop(subject, None)
            return number

        return self._once(("id", subject, schema, normalize), ask)

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> Registered:
        """Implements `Registry.lookup`."""

        def ask() -> Registered:
            answer = self._ask("POST", f"/subjects/{_part(subject)}?normalize={_flag(normalize)}", _body(schema))
            return Registered(schema, _number(answer, "id"), subject, _number(answer, "version"))

        return self._once(("version", subject, schema, normalize), ask)

    def latest(self, subject: str, seconds: float) -> Registered:
        """Implements `Registry.latest`; while the registry is away, returns the last known version."""
        found_at, version = self._newest.get(subject, (0.0, None))
        if version is not None and time.monotonic() < found_at + seconds:
            return version
        try:
            newest = self._version(subject, "latest")
        except RegistryUnavailable:
            if version is not None:
                return version
            raise
        self._newest[subject] = time.monotonic(), newest
        return newest

    def schema(self, schema_id: int) -> SchemaText:
        """Implements `Registry.schema`."""
        return self._once(("schema", schema_id), lambda: _text(self._ask("GET", f"/schemas/ids/{schema_id}")))

    def referenced(self, reference: Reference) -> SchemaText:
        """Implements `Registry.referenced`."""
        place = reference.subject, reference.version
        return self._once(("reference", *place), lambda: self._version(place[0], str(place[1])).schema)

    def compatible(self, subject: str, version: str, schema: SchemaText) -> bool:
        """Implements `Registry.compatible`."""

        def ask() -> bool:
            path = f"/compatibility/subjects/{_part(subject)}/versions/{_part(version)}"
            return self._ask("POST", path, _body(schema)).get("is_compatible") is True

        if version == "latest":
            return ask()
        return self._once(("compatible", subject, version, schema), ask)

    def _version(self, subject: str, version: str) -> Registered:
        answer = self._ask("GET", f"/subjects/{_part(subject)}/versions/{version}")
        return Registered(_text(answer), _number(answer, "id"), subject, _number(answer, "version"))

    def _once(self, key: Hashable, ask: Callable[[], Answer]) -> Answer:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                answer: Answer = self._kept[key]
                return answer
            until, no = self._noes.get(key, (0.0, None))
        if no is not None and time.monotonic() < until:
            raise type(no)(str(no), no.code)
        try:
            answer = ask()
        except RegistryError as error:
            with self._lock:
                if len(self._noes) >= MAX_KEPT:
                    self._noes.clear()
                self._noes[key] = time.monotonic() + NO_SECONDS, error
            raise
        with self._lock:
            self._noes.pop(key, None)
            self._kept[key] = answer
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return answer

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        until, said = self._away
        if time.monotonic() < until:
            raise RegistryUnavailable(said)
        try:
            answer = self._http.ask(method, path, body)
        except Unavailable as error:
            said = f"The schema registry is away: {error.message}"
            self._away = time.monotonic() + AWAY_SECONDS, said
            raise RegistryUnavailable(said) from None
        except (Unauthenticated, FailedPrecondition) as error:
            raise RegistryRefused(f"The schema registry refuses: {error.message}") from None
        except RegistryNo as no:
            code = INCOMPATIBLE if no.status == INCOMPATIBLE else no.code
            raise RegistryError(f"The schema registry refused: {no}; error code: {code}", code) from None
        except (KeelmanError, MemoryError):
            raise
        except Exception as error:  # for instance an illegal header in the request: no record is at fault
            raise RegistryRefused(f"The schema registry does not answer: {type(error).__name__}: {error}") from None
        if not isinstance(answer, dict):
            raise RegistryRefused(f"The schema registry's answer to {method} {path} cannot be read")
        return answer


def _part(text: str) -> str:
    return quote(text, safe="")


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _body(schema: SchemaText) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.kind is not SchemaKind.AVRO:
        body["schemaType"] = schema.kind.value
    if schema.references:
        body["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    return body


def _number(answer: Mapping[str, Any], name: str) -> int:
    try:
        return int(answer[name])
    except (KeyError, ValueError, TypeError) as error:
        raise RegistryRefused(f"The schema registry's answer cannot be read: {error!r}") from None


def _text(answer: Mapping[str, Any]) -> SchemaText:
    try:
        references = tuple(
            Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in answer.get("references") or ()
        )
        return SchemaText(SchemaKind(answer.get("schemaType") or "AVRO"), str(answer["schema"]), references)
    except (KeyError, ValueError, TypeError) as error:
        raise RegistryRefused(f"The schema registry's answer cannot be read: {error!r}") from None
