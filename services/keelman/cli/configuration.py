"""Reads connector configurations from the options of commands: files, and key=value texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from keelman.model.errors import InvalidArgument


def given_config(file: Path | None, values: Sequence[str] | None) -> tuple[dict[str, str] | None, dict[str, str]]:
    """Returns the configuration of --config-file, None without it, and of --set. Raises InvalidArgument as
    `read_config`."""
    return None if file is None else read_config(file), pairs("--set", values or ())


def class_of(config: Mapping[str, str]) -> str:
    """Returns the class in a connector's configuration. Raises InvalidArgument if it has none."""
    if not config.get("connector.class"):
        raise InvalidArgument(
            "connector.class: not set: set it in --config-file FILE or with --set connector.class=..."
        )
    return config["connector.class"]


def read_config(file: Path) -> dict[str, str]:
    """Reads a configuration from a .properties file, or from JSON: the bare map, or Connect's {"name":…, "config":{…}}.

    Raises InvalidArgument for a file that cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InvalidArgument(f"--config-file: {file}: {reason}") from None
    if file.suffix != ".json":
        import javaproperties  # noqa: PLC0415  (part of the worker's extra, needed for such files only)

        return {str(k): str(v) for k, v in javaproperties.loads(text).items()}
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"--config-file: {file} is not JSON: {error}") from None
    config = document.get("config", document) if isinstance(document, dict) else None
    if not isinstance(config, dict) or any(isinstance(v, dict | list) for v in config.values()):
        raise InvalidArgument(
            f"--config-file: {file}: expected a JSON object without nested values, or one under config"
        )
    return {k: _text(v) for k, v in config.items() if v is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Returns key=value texts as a map. Raises InvalidArgument for a text without '='."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidArgument.of(option, text, "key=value")
        values[key.strip()] = value
    return values
