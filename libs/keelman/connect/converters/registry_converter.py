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
    """Stores and returns the value; empties a full cache first."""
    if len(cache) >= most:
        cache.clear()
    cache[key] = value
    return value


def kept(cache: dict[_K, _V], most: int, key: _K, make: Callable[[], _V]) -> _V:
    """Returns the cached value, or makes and stores it."""
    value = cache.get(key)
    return keep(cache, most, key, make()) if value is None else value


class RegistryConverter(Converter):
    """Converts for one topic after another: `of_topic` returns the converter for a topic, which shares all caches
    except the ids. Only such a converter may write or read."""

    kinds = (PluginType.CONVERTER,)
    by_topic = True
    kind: ClassVar[SchemaKind]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the registry's keys and those of translations; a subclass adds its own."""
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
        """Called once, before it converts. Raises ConfigValueError if the configuration is not legal."""
        self._registry = open_registry(self._given)

    @property
    def registry(self) -> Registry:
        """The configured registry."""
        if self._registry is None:
            raise ConnectError(f"{type(self).__name__} was given no schema registry")
        return self._registry

    def of_topic(self, topic: str) -> Self:
        """Returns the same converter for the records of a topic."""
        converter = self._topics.get(topic)
        if converter is None:
            converter = copy.copy(self)
            converter.topic, converter._ids, converter._newest = topic, {}, {}
            converter.begin_topic()
            keep(self._topics, MAX_TOPICS, topic, converter)
        return converter

    def begin_topic(self) -> None:
        """Called once for each topic; a subclass clears its state of the previous topic."""

    @property
    def keeps_ids(self) -> bool:
        """Whether a schema keeps its id: not if the newest version is looked up again from time to time."""
        config = self.config
        newest = config[registry_keys.USE_LATEST] and config[registry_keys.LATEST_SECONDS] >= 0
        return not newest or config[registry_keys.AUTO_REGISTER] or config[registry_keys.USE_ID] >= 0

    def subject(self, name: str | None) -> str:
        """Returns the subject for schemas of this topic; `name` is the schema's own. Raises DataError."""
        return self._subject(self.topic, self.is_key, name)

    def id_to_write(self, schema: SchemaText, name: str | None) -> tuple[int, SchemaText]:
        """Returns the id for records of a schema and the schema to write them with, which differs if configured
        (`use.schema.id`, `use.latest.version`). Raises Registry's errors."""
        identifier = self._ids.get((schema, name))
        if identifier is not None:
            return identifier
        subject, registry, config = self.subject(name), self.registry, self.config
        normalize: bool = config[registry_keys.NORMALIZE]
        if config[registry_keys.AUTO_REGISTER]:
            registered = registry.register(subject, schema, normalize=normalize), schema
        elif config[registry_keys.USE_ID] >= 0:
            # Whether values fit that schema is seen when they are written; ID_STRICT changes nothing.
            registered = config[registry_keys.USE_ID], registry.schema(config[registry_keys.USE_ID])
        elif config[registry_keys.USE_LATEST]:
            newest = self._latest(subject)
            self._compare(newest, schema, subject)
            registered = newest.id, newest.schema
        else:
            registered = registry.lookup(subject, schema, normalize=normalize).id, schema
        if not self.keeps_ids:
            return registered
        return keep(self._ids, config[registry_keys.MAX_SCHEMAS], (schema, name), registered)

    def _latest(self, subject: str) -> Registered:
        """Returns the version that counts as the newest: "for good" means for this converter's lifetime."""
        seconds: int = self.config[registry_keys.LATEST_SECONDS]
        if seconds >= 0:
            return self.registry.latest(subject, seconds)
        most: int = self.config[registry_keys.MAX_SCHEMAS]
        return kept(self._newest, most, subject, lambda: self.registry.latest(subject, 0))

    def _compare(self, newest: Registered, schema: SchemaText, subject: str) -> None:
        """Raises DataError if the record's schema is not compatible with the newest version, by the subject's rule."""
        if not self.config[registry_keys.LATEST_STRICT] or newest.schema == schema:
            return
        if not self.registry.compatible(subject, str(newest.version), schema):
            raise DataError(
                f"Incompatible schema {newest.schema.text} for schema {schema.text} (subject {subject}). "
                f"Set {registry_keys.LATEST_STRICT}=false to disable this check"
            )

    def schema_of(self, schema_id: int) -> SchemaText:
        """Returns the schema with an id. Raises Registry's errors, DataError for a schema of another kind."""
        schema = self.registry.schema(schema_id)
        if schema.kind is not self.kind:
            raise DataError(f"The schema with id {schema_id} is of type {schema.kind}, not {self.kind}")
        return schema

    def referenced(self, schema: SchemaText) -> dict[str, SchemaText]:
        """Returns all schemas that it refers to, by name, in order of use."""
        return closure(self.registry, schema) if schema.references else {}

    def version(self, schema: SchemaText, name: str | None) -> int | None:
        """Returns the schema's version in the subject of this topic, None where it is not registered there."""
        if name is None and self._by_name:
            return None
        try:
            return self.registry.lookup(self.subject(name), schema).version
        except RegistryError as error:
            if error.code in ABSENT:
                return None
            raise
