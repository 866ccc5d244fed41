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
    """Base of transforms and predicates: holds the parsed configuration. `_set_up` takes what they need from `config`,
    and raises ConfigValueError for what is not legal."""

    name: ClassVar[str]
    """The simple name of Connect's class."""
    keys: ClassVar[tuple[ConfigKey, ...]] = ()
    """Of its configuration, without the prefix of its alias."""
    of_headers: ClassVar[bool] = False
    """Whether it looks at headers or changes them."""
    of_header_values: ClassVar[bool] = False
    """Whether it may look at their values: none of ours does."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Its keys."""
        return ConfigDef(*cls.keys)

    def __init__(self, config: Mapping[str, str]) -> None:
        """Raises ConfigValueError for what is not legal."""
        self.config = self.config_def().parse(config)
        self._set_up()

    def _set_up(self) -> None:  # noqa: B027  # some need nothing
        pass


class Transform(Configured):
    """One step of a chain. Made once a task; has no state but what it keeps of schemas it has seen."""

    parts: ClassVar[tuple[Part, ...]] = ("Key", "Value")
    """The two that it comes for, or one without a name for the whole record."""

    def __init__(self, config: Mapping[str, str], part: Part = "") -> None:
        """Raises ConfigValueError for what is not legal."""
        super().__init__(config)
        self.part = part
        self.defaults: bool = self.config.get(NULL_DEFAULT, False)

    @property
    def class_name(self) -> str:
        """The full name of Connect's class."""
        return f"{PACKAGE}{self.name}{'$' if self.part else ''}{self.part}"

    @abstractmethod
    def apply(self, record: Record) -> Record | None:
        """The record after this step, perhaps the same one changed; None when it is dropped. Raises ConnectError."""

    def columnar(self, batch: ColumnBatch) -> list[ColumnBatch] | None:
        """Does the same to a batch of one shape at once, perhaps to the batch itself; None where it cannot or where it
        would fail, and has changed nothing then. Raises ConnectError."""
        return None

    def column(self, batch: ColumnBatch) -> Data:
        """The keys or the values."""
        return batch.key if self.part == "Key" else batch.value

    def columns_changed(self, batch: ColumnBatch, column: Data) -> list[ColumnBatch]:
        """Puts others in their place. A Column may hold anything."""
        batch.loose = batch.loose or not isinstance(column, StructColumn | Nulls)
        if self.part == "Key":
            batch.key = column
        else:
            batch.value = column
        return [batch]

    def data(self, record: Record) -> tuple[Schema | None, Any]:
        """The key or the value, with its schema."""
        return (record.key_schema, record.key) if self.part == "Key" else (record.value_schema, record.value)

    def changed(self, record: Record, schema: Schema | None, value: Any) -> Record:
        """The record with another key or value."""
        if self.part == "Key":
            record.key_schema, record.key = schema, value
        else:
            record.value_schema, record.value = schema, value
        return record


class Predicate(Configured):
    """Decides whether a transform applies to a record."""

    @abstractmethod
    def test(self, record: Record) -> bool:
        """Whether the record is one of those."""

    @abstractmethod
    def columnar(self, batch: ColumnBatch) -> bool | list[bool]:
        """The same of the records of one shape: of all of them, or of each."""


def some_names(name: str, value: Any) -> None:
    """A validator: at least one name. Raises ConfigValueError with Connect's text."""
    if not value:
        whole = f"Configuration '{name}' must not be empty. Valid values include: any non-empty value"
        raise ConfigValueError(name, value, whole=whole)


def null_default() -> ConfigKey:
    """The key that most transforms of fields have."""
    doc = "Whether a null becomes its field's default value, where it has one."
    return ConfigKey(NULL_DEFAULT, Type.BOOLEAN, True, Importance.MEDIUM, doc)


def a_struct(value: object, purpose: str) -> Struct:
    """The value, which has a schema, as a struct. Raises DataError with Connect's text."""
    if isinstance(value, Struct):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {_found(value)}")


def a_map(value: object, purpose: str) -> Mapping[Any, Any]:
    """The value, which has no schema, as a map. Raises DataError with Connect's text."""
    if isinstance(value, Mapping):
        return value
    raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {_found(value)}")


def _found(value: object) -> str:
    return "null" if value is None else java_class(value)


def got(struct: Struct, field: Field, *, defaults: bool) -> Any:
    """A field's value; with `defaults` that of its schema where it is null."""
    value = struct.values.get(field.name)
    return field.schema.default if value is None and defaults else value


def with_fields(schema: Schema, fields: tuple[Field, ...]) -> Schema:
    """A struct's schema with other fields and neither a default nor a note of being optional, but all its other marks.

    Raises SchemaBuilderError for a name that is there twice.
    """
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {field.name}")
        seen.add(field.name)
    return replace(schema, fields=fields, optional=False, default=None)


class SchemaBuilderError(DataError):
    """A schema cannot be made."""

    java_name = "org.apache.kafka.connect.errors.SchemaBuilderException"


class IllegalArgumentError(DataError):
    """Java's IllegalArgumentException, as some transforms let it through."""

    java_name = "java.lang.IllegalArgumentException"


class OfSchemas(Generic[T]):
    """Calls `make` once for each schema object: for one that it has seen of late it returns the same result again."""

    def __init__(self, make: Callable[[Schema], T]) -> None:
        self._make = make
        self._made: dict[int, tuple[Schema, T]] = {}

    def __call__(self, schema: Schema) -> T:
        """Raises what `make` raises."""
        found = self._made.get(id(schema))
        if found is not None and found[0] is schema:
            return found[1]
        made = self._make(schema)
        if len(self._made) >= MAX_SCHEMAS:
            self._made.clear()
        self._made[id(schema)] = (schema, made)
        return made
