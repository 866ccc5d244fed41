"""Files of connectors that a standalone worker begins with: .properties, or JSON as a plain map or as POST takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.runtime.logging import get_logger
from keelman.worker.herder import Herder
from keelman.worker.operations import Operations
from keelman.worker.properties import file_properties
from keelman.worker.rest_errors import RestError

log = get_logger()
CREATE_KEYS = {"name", "config", "initial_state"}


@dataclass(frozen=True, slots=True)
class NewConnector:
    """A connector as a file has it."""

    file: str
    name: str
    config: dict[str, str]
    initial_state: str | None = None


def read_connectors(files: Sequence[str]) -> list[NewConnector]:
    """The connectors of all files, in order. Raises InvalidArgument naming the file and what is wrong with it."""
    found = [read_connector(Path(file)) for file in files]
    names = [one.name for one in found]
    for one in found:
        if names.count(one.name) > 1:
            both = " and ".join(other.file for other in found if other.name == one.name)
            raise InvalidArgument(f"{both}: each of them is connector {one.name!r}; a name stands for one connector")
    return found


def read_connector(file: Path) -> NewConnector:
    """One file, whose content says what it is, as for Connect. Raises InvalidArgument."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{file}: it cannot be read: {error.strerror}") from None
    if not raw.lstrip().startswith(b"{"):
        return _made(file, None, file_properties(file), None)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidArgument(f"{file}: it begins as JSON and is none: {error}") from None
    if isinstance(value.get("config"), dict):
        if unknown := sorted(value.keys() - CREATE_KEYS):
            raise InvalidArgument(
                f"{file}: {', '.join(unknown)} beside config: legal are {', '.join(sorted(CREATE_KEYS))}"
            )
        return _made(file, value.get("name"), value["config"], value.get("initial_state"))
    return _made(file, None, value, None)


def _made(file: Path, name: Any, config: dict[str, Any], state: Any) -> NewConnector:
    for key, value in config.items():
        if isinstance(value, dict | list) or value is None:
            raise InvalidArgument(f"{file}: {key}: {orjson.dumps(value).decode()} is not legal: a text")
    texts = {k: v if isinstance(v, str) else orjson.dumps(v).decode() for k, v in config.items()}
    named = str(name if name is not None else texts.get("name", "")).strip()
    if not named:
        raise InvalidArgument(f"{file}: name is missing: the connector's name")
    if texts.get("name", named) != named:
        raise InvalidArgument(
            f"{file}: Connector name configuration in 'config' doesn't match the one specified in 'name' at the top "
            "level."
        )
    return NewConnector(str(file), named, {**texts, "name": named}, None if state is None else str(state))


async def begin_connectors(connectors: Sequence[NewConnector], herder: Herder, operations: Operations) -> None:
    """Creates them once the worker is there. Raises InvalidArgument naming the file of one that cannot be."""
    await herder.joined.wait()
    for one in connectors:
        try:
            await operations.put_config(one.name, one.config, create=True, initial_state=one.initial_state)
        except (RestError, KeelmanError) as error:
            raise InvalidArgument(f"{one.file}: connector {one.name} cannot be created: {error.message}") from None
        log.info("connector_created", connector=one.name, file=one.file)
