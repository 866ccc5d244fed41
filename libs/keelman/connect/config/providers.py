"""Config providers under Connect's names: where the values of references come from.

`org.apache.kafka.common.config.provider.{File,Directory,EnvVar}ConfigProvider` with their parameters. What they find,
what they pass over in silence and the texts of their errors are Apache Kafka's (tests/recorded/config_providers.json).
Beyond it they read no file that is not a regular one or is larger than a megabyte.
"""

from __future__ import annotations

import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

import javaproperties

from keelman.connect.config.references import Reference
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.model.keys import under

NAMES, PACKAGE = "config.providers", "org.apache.kafka.common.config.provider."
LARGEST_BYTES = 1 << 20

Stamp = tuple[tuple[int, ...] | None, ...]
"""What shows whether files may have changed."""


class ConfigProviderError(ConnectError):
    """A provider cannot read what a reference names. The message is Connect's and holds no value."""

    java_name = "org.apache.kafka.common.config.ConfigException"


class ConfigProvider(ABC):
    """One configured provider. Its methods read files, so they are for threads."""

    java_class: ClassVar[str]

    @abstractmethod
    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """The values of those of the keys that there are. Raises ConfigProviderError."""

    def stamp(self, path: str, keys: Iterable[str]) -> Stamp:
        """Differs once what `get` reads was written again; costs no more than looking at files."""
        return ()


@dataclass(frozen=True, slots=True)
class AllowedPaths:
    """The parameter `allowed.paths` of the two that read files; None allows every path."""

    paths: tuple[str, ...] | None

    @staticmethod
    def of(parameters: Mapping[str, str]) -> AllowedPaths:
        """Raises ConfigProviderError."""
        text = parameters.get("allowed.paths", "")
        if not text:
            return AllowedPaths(None)
        paths = tuple(os.path.normpath(one) for one in text.split(","))
        for path in paths:
            if not os.path.isabs(path):
                raise ConfigProviderError(f"Path {path} is not absolute")
            if not os.path.exists(path):
                raise ConfigProviderError(f"Path {path} does not exist")
        return AllowedPaths(paths)

    def checked(self, path: str) -> str | None:
        """The path to read, None for one that is not allowed."""
        if not path or self.paths is None:
            return path or None
        normal = os.path.normpath(path)
        parts = PurePosixPath(normal)
        return normal if any(parts.is_relative_to(one) for one in self.paths) else None


class FileProvider(ConfigProvider):
    """`${file:/path:key}`: a key of a .properties file."""

    java_class = PACKAGE + "FileConfigProvider"

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError."""
        self._allowed = AllowedPaths.of(parameters)

    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """The keys of the file."""
        file = self._allowed.checked(path)
        if file is None:
            return {}
        try:
            found = javaproperties.loads(_text(file))
        except (OSError, ValueError):
            raise ConfigProviderError(f"Could not read properties from file {path}") from None
        return {key: found[key] for key in keys if key in found}

    def stamp(self, path: str, keys: Iterable[str]) -> Stamp:
        """The file's."""
        file = self._allowed.checked(path)
        return () if file is None else (_stamp(file),)


class DirectoryProvider(ConfigProvider):
    """`${directory:/path:file}`: the whole text of a file, line ends and all."""

    java_class = PACKAGE + "DirectoryConfigProvider"

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError."""
        self._allowed = AllowedPaths.of(parameters)

    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """The texts of the files of these names."""
        folder = self._allowed.checked(path)
        if folder is None or not os.path.isdir(folder):
            return {}
        found: dict[str, str] = {}
        for key in filter(_is_name, keys):
            file = os.path.join(folder, key)
            if os.path.isfile(file):
                try:
                    found[key] = _text(file)
                except (OSError, ValueError):
                    raise ConfigProviderError(f"Could not read file {file} for property {key}") from None
        return found

    def stamp(self, path: str, keys: Iterable[str]) -> Stamp:
        """Those of the files."""
        folder = self._allowed.checked(path)
        return (
            () if folder is None else tuple(_stamp(os.path.join(folder, key)) for key in sorted(filter(_is_name, keys)))
        )


class EnvVarProvider(ConfigProvider):
    """`${env:NAME}`: a variable of this process's environment, as it was when the provider was made."""

    java_class = PACKAGE + "EnvVarConfigProvider"

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError."""
        pattern = parameters.get("allowlist.pattern", ".*")
        try:
            allowed = re.compile(pattern)
        except re.error as error:
            raise ConfigProviderError(f"allowlist.pattern {pattern!r} is not a pattern: {error}") from None
        self._variables = {name: value for name, value in os.environ.items() if allowed.fullmatch(name)}

    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """The variables of these names."""
        if path:
            raise ConfigProviderError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return {key: self._variables[key] for key in keys if key in self._variables}


_KINDS: Mapping[str, type[FileProvider | DirectoryProvider | EnvVarProvider]] = {
    kind.java_class: kind for kind in (FileProvider, DirectoryProvider, EnvVarProvider)
}


def providers_of(properties: Mapping[str, str]) -> dict[str, ConfigProvider]:
    """The providers that a worker's properties name; those without a class are passed over, as Connect does.

    Raises ConfigValueError for another class, ConfigProviderError for illegal parameters.
    """
    found: dict[str, ConfigProvider] = {}
    for name in filter(None, (one.strip() for one in properties.get(NAMES, "").split(","))):
        class_key, prefix = f"{NAMES}.{name}.class", f"{NAMES}.{name}.param."
        if class_key not in properties:
            continue
        kind = _KINDS.get(properties[class_key].strip())
        if kind is None:
            why = "Could not load config provider class or one of its dependencies. Those there are: "
            why += ", ".join(_KINDS)
            raise ConfigValueError(class_key, properties[class_key], why)
        found[name] = kind(under(prefix, properties))
    return found


def read(providers: Mapping[str, ConfigProvider], wanted: Iterable[Reference]) -> dict[Reference, str]:
    """The values of those references that there are. Raises ConfigProviderError. For threads."""
    by_path: dict[tuple[str, str], list[str]] = {}
    for one in wanted:
        if one.provider in providers:
            by_path.setdefault((one.provider, one.path), []).append(one.key)
    return {
        Reference(provider, path, key): value
        for (provider, path), keys in by_path.items()
        for key, value in providers[provider].get(path, keys).items()
    }


def _is_name(key: str) -> bool:
    return "/" not in key and "\0" not in key and key not in ("", ".", "..")


def _text(file: str) -> str:
    """Raises OSError, ValueError. Waits for nothing: neither for the writer of a pipe nor for the end of a device."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        data = stream.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise ValueError("too large")
    return data.decode()


def _stamp(file: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev
