"""Reads the connectors that a standalone worker begins with: .properties, or JSON as PUT and POST take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.worker.config.file import file_properties
from keelman.worker.errors import RestError
from keelman.worker.group.herder import Herder
from keelman.worker.rest.bodies import new_connector, parsed, text_map
from keelman.worker.rest.operations import Operations

log = get_logger()


@dataclass(frozen=True, slots=True)
class FileConnector:
    """A connector in a file."""

    file: str
    name: str
    config: Mapping[str, str | None]
    initial_state: str | None = None


def read_connectors(files: Sequence[str]) -> list[FileConnector]:
    """Returns the connectors of all files, in order. Raises InvalidArgument naming the file and its problem."""
    connectors = [read_connector(Path(file)) for file in files]
    names = [connector.name for connector in connectors]
    for connector in connectors:
        if names.count(connector.name) > 1:
            both = " and ".join(other.file for other in connectors if other.name == connector.name)
            raise InvalidArgument(f"{both}: each defines connector {connector.name!r}: rename one")
    return connectors


def read_connector(file: Path) -> FileConnector:
    """Reads one file, whose kind follows from its content, as in Connect. Raises InvalidArgument."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{file}: it cannot be read: {error.strerror}") from None
    if not raw.lstrip().startswith(b"{"):
        return _made(file, None, file_properties(file), None)
    try:
        value = parsed(raw, "it begins as JSON and")
        if isinstance(value.get("config"), dict):
            body = new_connector(value)
            return _made(file, body.name, body.config or {}, body.initial_state)
        return _made(file, None, text_map(value), None)
    except RestError as error:
        raise InvalidArgument(f"{file}: {error.message}") from None


def _made(file: Path, name: str | None, config: Mapping[str, str | None], state: str | None) -> FileConnector:
    name_in_config = config.get("name")
    named = (name or name_in_config or "").strip()
    if not named:
        raise InvalidArgument(f"{file}: name is missing: the connector's name")
    if name and name_in_config is not None and name_in_config != named:
        raise InvalidArgument(
            f"{file}: Connector name configuration in 'config' doesn't match the one specified in 'name' at the top "
            "level."
        )
    return FileConnector(str(file), named, {**config, "name": named}, state)


async def begin_connectors(connectors: Sequence[FileConnector], herder: Herder, operations: Operations) -> None:
    """Creates them once the worker has joined. Raises InvalidArgument naming the file of a connector that cannot be
    created."""
    await herder.joined.wait()
    for connector in connectors:
        try:
            await operations.put_config(
                connector.name, connector.config, create=True, initial_state=connector.initial_state
            )
        except (RestError, KeelmanError) as error:
            raise InvalidArgument(
                f"{connector.file}: connector {connector.name} cannot be created: {error.message}"
            ) from None
        log.info("connector_created", connector=connector.name, file=connector.file)
