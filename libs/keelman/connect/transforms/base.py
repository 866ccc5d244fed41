"""The base classes of transforms and predicates, and functions that most of them need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

from keelman.connect.columns import ColumnBatch, Data, Nulls, StructColumn
from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.java.numbers import java_class
from keelman.connect.record import Record
from keelman.connect.schema import Field, Schema, Struct

T = TypeVar("T")
MAX_SCHEMAS = 16
NULL_DEFAULT = "replace.null.with.default"
PACKAGE = "org.apache.kafka.connect.transforms."
Part = Literal["", "Key", "Value"]


class Configured(ABC):
    """Base of transforms and predicates: holds the parsed configuration. `_set_up` reads the needed values from
    `config`, and raises ConfigValueError for illegal ones."""

    name: ClassVar[str]
    """The simple name of Connect's class."""
    keys: ClassVar[tuple[ConfigKey, ...]] = ()
    """The keys of its configuration, without the prefix of its alias."""
    of_headers: ClassVar[bool] = False
    """Whether it reads or changes headers."""
    of_header_values: ClassVar[bool] = False
    """Whether it may read the values of headers: none of ours does."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns its keys."""
        return ConfigDef(*cls.keys)

    def __init__(self, config: Mapping[str, str]) -> None:
        """Raises ConfigValueError for an illegal configuration."""
        self.config = self.config_def().parse(config)
        self._set_up()

    def _set_up(self) -> None:  # noqa: B027  # some need nothing
        pass


class Transform(Configured):
    """One step of a chain. Made once per task; its only state is a cache of schemas."""

    parts: ClassVar[tuple[Part, ...]] = ("Key", "Value")
    """The two parts that it is available for, or one without a name for the whole record."""

    def __init__(self, config: Mapping[str, str], part: Part = "") -> None:
        """Raises ConfigValueError for an illegal configuration."""
        super().__init__(config)
        self.part = part
        self.defaults: bool = self.config.get(NULL_DEFAULT, False)

    @property
    def class_name(self) -> str:
        """The full name of Connect's class."""
        return f"{PACKAGE}{self.name}{'$' if self.part else ''}{self.part}"

    @abstractmethod
    def apply(self, record: Record) -> Record | None:
        """Returns the record after this step, perhaps the same one changed; None to drop it. Raises ConnectError."""

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Applies this step to a batch of one shape at once, perhaps in place; returns None if it cannot or would
        fail, and then has changed nothing. Raises ConnectError."""
        return None

    def column(self, batch: ColumnBatch) -> Data:
        """Returns the column of keys or of values."""
        return batch.key if self.part == "Key" else batch.value

    def columns_changed(self, batch: ColumnBatch, column: Data) -> list[ColumnBatch]:
        """Replaces the column of keys or of values. A Column may hold anything."""
        batch.loose = batch.loose or not isinstance(column, StructColumn | Nulls)
        if self.part == "Key":
            batch.key = column
        else:
            batch.value = column
        return [batch]

    def data(self, record: Record) -> tuple[Schema | None, Any]:
        """Returns the key or the value, with its schema."""
        return (record.key_schema, record.key) if self.part == "Key" else (record.value_schema, record.value)

    def changed(self, record: Record, schema: Schema | None, value: Any) -> Record:
        """Replaces the record's key or value, and returns the record."""
        if self.part == "Key":
            record.key_schema, record.key = schema, value
        else:
            record.value_schema, record.value = schema, value
        return record


class Predicate(Configured):
    """Decides whether a transform applies to a record."""

    @abstractmethod
    def test(self, record: Record) -> bool:
        """Whether the record meets the predicate."""

    @abstractmethod
    def columnar(self, batch: ColumnBatch) -> bool | list[bool]:
        """Tests the records of one shape: returns one result for all, or one for each."""


def some_names(name: str, value: Any) -> None:
    """Validates that there is at least one name. Raises ConfigValueError with Connect's text."""
    if not value:
        whole = f"Configuration '{name}' must not be empty. Valid values include: any non-empty value"
        raise ConfigValueError(name, value, whole=whole)


def null_default() -> ConfigKey:
    """Returns the key that most transforms of fields have."""
    doc = "Whether a null becomes its field's default value, where it has one."
    return ConfigKey(NULL_DEFAULT, Type.BOOLEAN, True, Importance.MEDIUM, doc)


def a_struct(value: object, purpose: str) -> Struct:
    """Returns a value with a schema as a struct. Raises DataError with Connect's text."""
    if isinstance(value, Struct):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {_found(value)}")


def a_map(value: object, purpose: str) -> Mapping[Any, Any]:
    """Returns a value without a schema as a map. Raises DataError with Connect's text."""
    if isinstance(value, Mapping):
        return value
    raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {_found(value)}")


def _found(value: object) -> str:
    return "null" if value is None else java_class(value)


def got(struct: Struct, field: Field, *, defaults: bool) -> Any:
    """Returns a field's value; with `defaults` the default of its schema in place of null."""
    value = struct.values.get(field.name)
    return field.schema.default if value is None and defaults else value


def with_fields(schema: Schema, fields: tuple[Field, ...]) -> Schema:
    """Returns a struct's schema with other fields: required and without a default, but with all its other attributes.

    Raises SchemaBuilderError for a duplicate name.
    """
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {field.name}")
        seen.add(field.name)
    return replace(schema, fields=fields, optional=False, default=None)


class SchemaBuilderError(DataError):
    """A schema is invalid."""

    java_name = "org.apache.kafka.connect.errors.SchemaBuilderException"


class IllegalArgumentError(DataError):
    """Java's IllegalArgumentException, as some transforms let it through."""

    java_name = "java.lang.IllegalArgumentException"


class OfSchemas(Generic[T]):
    """Calls `make` once for each schema object: returns the earlier result for a schema that it has seen recently."""

    def __init__(self, make: Callable[[Schema], T]) -> None:
        self._make = make
        self._made: dict[int, tuple[Schema, T]] = {}

    def __call__(self, schema: Schema) -> T:
        """Returns the result for a schema. Raises the errors of `make`."""
        entry = self._made.get(id(schema))
        if entry is not None and entry[0] is schema:
            return entry[1]
        derived = self._make(schema)
        if len(self._made) >= MAX_SCHEMAS:
            self._made.clear()
        self._made[id(schema)] = (schema, derived)
        return derived
