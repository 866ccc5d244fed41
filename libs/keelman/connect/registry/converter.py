"""The base of converters with a schema registry: finds the id to write a schema with, and the schema of an id."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import ClassVar, Self, TypeVar

from keelman.connect.config.converter_keys import ROLE
from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.converters.converter import Converter
from keelman.connect.errors import ConnectError, DataError
from keelman.connect.registry import keys as registry_keys
from keelman.connect.registry import subjects
from keelman.connect.registry.interface import (
    ABSENT,
    OpenRegistry,
    Registered,
    Registry,
    RegistryError,
    SchemaKind,
    SchemaText,
    closure,
)

MAX_TOPICS = 1000


_K = TypeVar("_K")
_V = TypeVar("_V")


def keep(cache: dict[_K, _V], most: int, key: _K, value: _V) -> _V:
    """Returns the value, and keeps it; a cache that is full is emptied first."""
    if len(cache) >= most:
        cache.clear()
    cache[key] = value
    return value


def kept(cache: dict[_K, _V], most: int, key: _K, make: Callable[[], _V]) -> _V:
    """What is kept, else what is made now."""
    found = cache.get(key)
    return keep(cache, most, key, make()) if found is None else found


class RegistryConverter(Converter):
    """Converts for one topic after another: `of_topic` gives the one for a topic, which shares all caches but that of
    ids. Only such a one may write or read."""

    kinds = (PluginType.CONVERTER,)
    by_topic = True
    kind: ClassVar[SchemaKind]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The registry's keys and those of translations; a subclass adds its own."""
        return registry_keys.registry_keys() + registry_keys.data_keys()

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self.is_key: bool = self.config[ROLE] == "key"
        self.topic = ""
        name = self.config["key.subject.name.strategy" if self.is_key else "value.subject.name.strategy"]
        self._subject, self._by_name = subjects.strategy(name), subjects.by_name(name)
        self._most: int = self.config[registry_keys.CACHE_SIZE]
        self._given = dict(config)
        self._registry: Registry | None = None
        self._topics: dict[str, Self] = {}
        self._ids: dict[tuple[SchemaText, str | None], tuple[int, SchemaText]] = {}
        self._newest: dict[str, Registered] = {}

    def bind(self, open_registry: OpenRegistry) -> None:
        """Called once, before it converts. Raises ConfigValueError when what it says is not legal."""
        self._registry = open_registry(self._given)

    @property
    def registry(self) -> Registry:
        """The configured one."""
        if self._registry is None:
            raise ConnectError(f"{type(self).__name__} was given no schema registry")
        return self._registry

    def of_topic(self, topic: str) -> Self:
        """The same for the records of a topic."""
        found = self._topics.get(topic)
        if found is None:
            found = copy.copy(self)
            found.topic, found._ids, found._newest = topic, {}, {}
            found.begin_topic()
            keep(self._topics, MAX_TOPICS, topic, found)
        return found

    def begin_topic(self) -> None:
        """Called once for each topic, where a subclass empties what holds for a topic alone."""

    @property
    def keeps_ids(self) -> bool:
        """Whether the id for a schema stays what it is: not where the newest version is to be looked for again."""
        config = self.config
        newest = config[registry_keys.USE_LATEST] and config[registry_keys.LATEST_SECONDS] >= 0
        return not newest or config[registry_keys.AUTO_REGISTER] or config[registry_keys.USE_ID] >= 0

    def subject(self, name: str | None) -> str:
        """Under which name schemas of this topic are kept; `name` is the schema's own. Raises DataError."""
        return self._subject(self.topic, self.is_key, name)

    def id_to_write(self, schema: SchemaText, name: str | None) -> tuple[int, SchemaText]:
        """The id for records of a schema and the schema to write them with: another one where the configuration says
        so (`use.schema.id`, `use.latest.version`). Raises what Registry raises."""
        known = self._ids.get((schema, name))
        if known is not None:
            return known
        subject, registry, config = self.subject(name), self.registry, self.config
        normalize: bool = config[registry_keys.NORMALIZE]
        if config[registry_keys.AUTO_REGISTER]:
            found = registry.register(subject, schema, normalize=normalize), schema
        elif config[registry_keys.USE_ID] >= 0:
            # Whether values fit that schema shows when they are written; ID_STRICT changes nothing.
            found = config[registry_keys.USE_ID], registry.schema(config[registry_keys.USE_ID])
        elif config[registry_keys.USE_LATEST]:
            newest = self._latest(subject)
            self._compare(newest, schema, subject)
            found = newest.id, newest.schema
        else:
            found = registry.lookup(subject, schema, normalize=normalize).id, schema
        if not self.keeps_ids:
            return found
        return keep(self._ids, config[registry_keys.MAX_SCHEMAS], (schema, name), found)

    def _latest(self, subject: str) -> Registered:
        """The version to take for the newest: for good means for as long as this converter is there."""
        seconds: int = self.config[registry_keys.LATEST_SECONDS]
        if seconds >= 0:
            return self.registry.latest(subject, seconds)
        most: int = self.config[registry_keys.MAX_SCHEMAS]
        return kept(self._newest, most, subject, lambda: self.registry.latest(subject, 0))

    def _compare(self, newest: Registered, schema: SchemaText, subject: str) -> None:
        """Raises DataError where the record's schema does not go with the newest version, by the subject's rule."""
        if not self.config[registry_keys.LATEST_STRICT] or newest.schema == schema:
            return
        if not self.registry.compatible(subject, str(newest.version), schema):
            raise DataError(
                f"Incompatible schema {newest.schema.text} for schema {schema.text} (subject {subject}). "
                f"Set {registry_keys.LATEST_STRICT}=false to disable this check"
            )

    def schema_of(self, schema_id: int) -> SchemaText:
        """The schema with an id. Raises what Registry raises, DataError for a schema of another kind."""
        found = self.registry.schema(schema_id)
        if found.kind is not self.kind:
            raise DataError(f"The schema with id {schema_id} is of type {found.kind}, not {self.kind}")
        return found

    def referenced(self, schema: SchemaText) -> dict[str, SchemaText]:
        """All that it refers to, by name; what others need comes first."""
        return closure(self.registry, schema) if schema.references else {}

    def version(self, schema: SchemaText, name: str | None) -> int | None:
        """The schema's version in the subject of this topic, None where it is not registered under that."""
        if name is None and self._by_name:
            return None
        try:
            return self.registry.lookup(self.subject(name), schema).version
        except RegistryError as error:
            if error.code in ABSENT:
                return None
            raise
