"""A schema registry for one copy run, which shows with each question that it is alive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from keelman.connect.registry.interface import OpenRegistry, Reference, Registered, Registry, SchemaText

Answer = TypeVar("Answer")


class AttendedRegistry:
    """A Registry over another. A batch may need many of its answers, and a run that is silent for too long gets its
    slot recycled: so it beats before each question and behind it. Raises also CutShort, as `beat` does."""

    def __init__(self, inner: Registry, beat: Callable[[], None]) -> None:
        self._inner = inner
        self._beat = beat

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """As Registry says."""
        return self._asked(partial(self._inner.register, subject, schema, normalize=normalize))

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> Registered:
        """As Registry says."""
        return self._asked(partial(self._inner.lookup, subject, schema, normalize=normalize))

    def latest(self, subject: str, seconds: float) -> Registered:
        """As Registry says."""
        return self._asked(partial(self._inner.latest, subject, seconds))

    def schema(self, schema_id: int) -> SchemaText:
        """As Registry says."""
        return self._asked(partial(self._inner.schema, schema_id))

    def referenced(self, reference: Reference) -> SchemaText:
        """As Registry says."""
        return self._asked(partial(self._inner.referenced, reference))

    def compatible(self, subject: str, version: str, schema: SchemaText) -> bool:
        """As Registry says."""
        return self._asked(partial(self._inner.compatible, subject, version, schema))

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        self._beat()
        found = ask()
        self._beat()
        return found


def attended(open_registry: OpenRegistry, beat: Callable[[], None]) -> OpenRegistry:
    """Opens registries that beat."""

    def opened(config: Mapping[str, str]) -> Registry:
        return AttendedRegistry(open_registry(config), beat)

    return opened
