"""Config providers under Connect's names: the sources of the values of references.

`org.apache.kafka.common.config.provider.{File,Directory,EnvVar}ConfigProvider` with their parameters. The values that
they find or silently ignore and the texts of their errors are Apache Kafka's
(tests/recorded/worker/config_providers.json). In addition they refuse files that are not regular or are larger than a
megabyte. keelman's own secrets have another provider, which has no parameter of Connect's.
"""

from __future__ import annotations

import json
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import ClassVar

import javaproperties

from keelman.connect.config.references import ConfigReference, references
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.java.bounded_match import SlowPattern
from keelman.connect.java.regex import JavaPattern, PatternError
from keelman.model.keys import under

NAMES, PACKAGE = "config.providers", "org.apache.kafka.common.config.provider."
LARGEST_BYTES = 1 << 20

Stamp = tuple[tuple[int, ...] | None, ...]
"""A value that changes when files may have changed."""


class ConfigProviderError(ConnectError):
    """A provider cannot read the value of a reference. The message is Connect's and holds no value."""

    java_name = "org.apache.kafka.common.config.ConfigException"


class ConfigProvider(ABC):
    """One configured provider. Its methods read files, so they are for threads."""

    java_class: ClassVar[str]
    parameter: ClassVar[str]
    """The name of its only parameter."""

    @classmethod
    @abstractmethod
    def check(cls, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError for parameters that are illegal on every host; reads no file."""

    @classmethod
    def check_path(cls, path: str) -> None:
        """Raises ConfigProviderError for a path that is illegal in any reference to this provider."""
        return

    @abstractmethod
    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """Returns the values of the existing keys among `keys`. Raises ConfigProviderError."""

    def stamp(self, path: str, keys: Iterable[str]) -> Stamp:
        """Returns a stamp that changes once the data that `get` reads is rewritten; only stats files."""
        return ()


@dataclass(frozen=True, slots=True)
class AllowedPaths:
    """The parameter `allowed.paths` of the two that read files; None allows every path."""

    paths: tuple[str, ...] | None

    @staticmethod
    def of(parameters: Mapping[str, str], *, here: bool = True) -> AllowedPaths:
        """Parses the parameter. Raises ConfigProviderError; with `here` also for paths that are not on this host."""
        text = parameters.get("allowed.paths", "")
        if not text:
            return AllowedPaths(None)
        paths = tuple(os.path.normpath(part) for part in text.split(","))
        for path in paths:
            if not os.path.isabs(path):
                raise ConfigProviderError(f"Path {path} is not absolute")
            if here and not os.path.exists(path):
                raise ConfigProviderError(f"Path {path} does not exist")
        return AllowedPaths(paths)

    def checked(self, path: str) -> str | None:
        """Returns the path to read, None if it is not allowed."""
        if not path or self.paths is None:
            return path or None
        normal = os.path.normpath(path)
        parts = PurePosixPath(normal)
        return normal if any(parts.is_relative_to(path) for path in self.paths) else None


class _OfPaths(ConfigProvider):
    """A provider that reads files below allowed paths."""

    parameter = "allowed.paths"

    @classmethod
    def check(cls, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError unless the paths are absolute."""
        AllowedPaths.of(parameters, here=False)

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError."""
        self._allowed = AllowedPaths.of(parameters)


class FileProvider(_OfPaths):
    """`${file:/path:key}`: a key of a .properties file."""

    java_class = PACKAGE + "FileConfigProvider"

    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """Returns the values of the file's keys."""
        file = self._allowed.checked(path)
        if file is None:
            return {}
        try:
            properties = javaproperties.loads(_text(file))
        except (OSError, ValueError):
            raise ConfigProviderError(f"Could not read properties from file {path}") from None
        return {key: properties[key] for key in keys if key in properties}

    def stamp(self, path: str, keys: Iterable[str]) -> Stamp:
        """Returns the file's stamp."""
        file = self._allowed.checked(path)
        return () if file is None else (_stamp(file),)


class DirectoryProvider(_OfPaths):
    """`${directory:/path:file}`: the whole text of a file, line ends and all."""

    java_class = PACKAGE + "DirectoryConfigProvider"

    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """Returns the texts of the files with these names."""
        folder = self._allowed.checked(path)
        if folder is None or not os.path.isdir(folder):
            return {}
        texts: dict[str, str] = {}
        for key in filter(_is_name, keys):
            file = os.path.join(folder, key)
            if os.path.isfile(file):
                try:
                    texts[key] = _text(file)
                except (OSError, ValueError):
                    raise ConfigProviderError(f"Could not read file {file} for property {key}") from None
        return texts

    def stamp(self, path: str, keys: Iterable[str]) -> Stamp:
        """Returns the files' stamps."""
        folder = self._allowed.checked(path)
        return (
            () if folder is None else tuple(_stamp(os.path.join(folder, key)) for key in sorted(filter(_is_name, keys)))
        )


class EnvVarProvider(ConfigProvider):
    """`${env:NAME}`: a variable of this process's environment, as it was when the provider was made."""

    java_class = PACKAGE + "EnvVarConfigProvider"
    parameter = "allowlist.pattern"

    @classmethod
    def check(cls, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError unless the parameter is a pattern."""
        cls._chosen(parameters, ())

    @classmethod
    def check_path(cls, path: str) -> None:
        """Raises ConfigProviderError for any path: a variable has none."""
        if path:
            raise ConfigProviderError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")

    @classmethod
    def _chosen(cls, parameters: Mapping[str, str], names: Iterable[str]) -> list[str]:
        try:
            allowed = JavaPattern(parameters.get(cls.parameter, ".*"))
            return [name for name in names if allowed.matches(name)]
        except (PatternError, SlowPattern) as error:
            raise ConfigProviderError(f"{cls.parameter} cannot be used: {error}") from None

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError."""
        self._variables = {name: os.environ[name] for name in self._chosen(parameters, os.environ)}

    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """Returns the variables with these names."""
        self.check_path(path)
        return {key: self._variables[key] for key in keys if key in self._variables}


class SecretsProvider(ConfigProvider):
    """`${secrets:name:key}`: a value of a secret of the installation, from the file that the agent keeps beside the
    worker. A missing value is an error, rather than a reference that stays unchanged."""

    java_class = "keelman.SecretsConfigProvider"
    parameter = "names"
    file_parameter = "file"
    """The file that the agent keeps; the agent sets this parameter."""

    @classmethod
    def check(cls, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError unless there are names."""
        if cls.parameter in parameters and not secret_patterns(parameters):
            raise ConfigProviderError(
                f"{cls.parameter} {parameters[cls.parameter]!r} must be names of secrets with commas, * for any rest"
            )

    @classmethod
    def check_path(cls, path: str) -> None:
        """Raises ConfigProviderError without the name of a secret."""
        if not path:
            raise ConfigProviderError("A secret is referred to with its name and a key: ${provider:name:key}")

    def __init__(self, parameters: Mapping[str, str]) -> None:
        """Raises ConfigProviderError."""
        self.check(parameters)
        self._file = parameters.get(self.file_parameter, "")

    def get(self, path: str, keys: Iterable[str]) -> dict[str, str]:
        """Returns the values of a secret."""
        self.check_path(path)
        try:
            secrets = json.loads(_text(self._file)) if self._file else {}
        except (OSError, ValueError):
            raise ConfigProviderError(f"Could not read secrets from file {self._file}") from None
        if path not in secrets:
            raise ConfigProviderError(f"There is no secret {path!r} that this worker may read")
        secret, key_names = secrets[path], list(keys)
        if missing := [key for key in key_names if key not in secret]:
            raise ConfigProviderError(f"Secret {path!r} has no key {missing[0]!r}: it has {', '.join(sorted(secret))}")
        return {key: str(secret[key]) for key in key_names}

    def stamp(self, path: str, keys: Iterable[str]) -> Stamp:
        """Returns the file's stamp."""
        return (_stamp(self._file),) if self._file else ()


SECRETS_OF_OTHERS = ("com.github.jcustenborder.kafka.config.aws.SecretsManagerConfigProvider",)
"""Providers of managed services: here their values are secrets of the installation."""
SCOPE = "keelman.secrets.scope"
"""A worker's property: the names of the secrets that all of its providers may read, with * for any rest."""
SECRET_NAMES = re.compile(r"[A-Za-z0-9/_+=.@-]{0,255}\*?")
"""A pattern of secret names in a scope, and so for an account: a name, or a common beginning with * for any rest."""
LEGAL_SCOPE = "names of secrets with commas, each at most at its end with * for any rest"
_Kind = type[FileProvider | DirectoryProvider | EnvVarProvider | SecretsProvider]
_KINDS: Mapping[str, _Kind] = {
    kind.java_class: kind for kind in (FileProvider, DirectoryProvider, EnvVarProvider, SecretsProvider)
}
_ALIASES: Mapping[str, _Kind] = dict.fromkeys(SECRETS_OF_OTHERS, SecretsProvider)


def secret_patterns(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the secret names, with * for any rest, that a provider's parameters allow; all if they give none."""
    text = parameters.get(SecretsProvider.parameter, "*")
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def is_named(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name, of a secret or a bucket, matches one of these, with * for any rest."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def narrowed(patterns: Iterable[str], scope: Iterable[str]) -> tuple[str, ...]:
    """Returns the patterns, narrowed to the names or beginnings with * of a scope.
    Leaves out partial overlaps of patterns that have other wildcards."""
    bounds, result = tuple(scope), list[str]()
    for pattern in patterns:
        begins = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        for bound in bounds:
            start = bound.removesuffix("*")
            if bound == start:
                result += [bound] if fnmatchcase(bound, pattern) else []
            elif begins.startswith(start):
                result.append(pattern)
            elif start.startswith(begins) and pattern[len(begins) :].startswith("*"):
                result.append(start + pattern[len(begins) :])
    return tuple(dict.fromkeys(result))


def secret_providers(properties: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Returns the secrets providers of a worker's properties, each with the patterns of names that it may read."""
    names = _names(properties) if NAMES in properties else []
    classes = (SecretsProvider.java_class, *SECRETS_OF_OTHERS)
    by_name = {
        name: secret_patterns(_parameters(properties, name))
        for name in names
        if properties[f"{NAMES}.{name}.class"].strip() in classes
    }
    if SCOPE not in properties:
        return by_name
    within = scope_of(properties[SCOPE])
    return {name: narrowed(patterns, within) for name, patterns in by_name.items()}


def scope_of(text: str) -> tuple[str, ...]:
    """Returns the names of secrets, with * for any rest, in the text of a scope."""
    return secret_patterns({SecretsProvider.parameter: text})


def with_secrets_file(properties: Mapping[str, str], file: str) -> dict[str, str]:
    """Returns a worker's properties with the file of its secrets, if it has a provider for them."""
    key = SecretsProvider.file_parameter
    return {**properties, **{f"{NAMES}.{name}.param.{key}": file for name in secret_providers(properties)}}


def providers_of(properties: Mapping[str, str]) -> dict[str, ConfigProvider]:
    """Returns the providers of a worker's properties; ignores those without a class, like Connect.

    Raises ConfigValueError for another class, ConfigProviderError for illegal parameters.
    """
    return {name: _kind(properties, name)(_parameters(properties, name)) for name in _names(properties)}


def provider_problems(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields keys of a worker's properties that are illegal for its providers, and why; reads no file."""
    kinds: dict[str, type[ConfigProvider]] = {}
    for name in _names(properties):
        try:
            kinds[name] = _kind(properties, name)
            kinds[name].check(_parameters(properties, name))
        except ConfigValueError as error:
            yield error.key, str(error)
        except ConfigProviderError as error:
            yield f"{NAMES}.{name}.param.{kinds[name].parameter}", str(error)
    for key, text in properties.items():
        for reference in references(text):
            try:
                if reference.provider in kinds:
                    kinds[reference.provider].check_path(reference.path)
            except ConfigProviderError as error:
                yield key, str(error)


def provided(properties: Mapping[str, str]) -> set[str]:
    """Returns the keys of a worker's properties whose values come from one of its own providers."""
    names = set(_names(properties))
    return {key for key, text in properties.items() if any(ref.provider in names for ref in references(text))}


def _names(properties: Mapping[str, str]) -> list[str]:
    named = filter(None, (name.strip() for name in properties.get(NAMES, "").split(",")))
    return [name for name in dict.fromkeys(named) if f"{NAMES}.{name}.class" in properties]


def _kind(properties: Mapping[str, str], name: str) -> _Kind:
    key = f"{NAMES}.{name}.class"
    text = properties[key].strip()
    kind = _KINDS.get(text) or _ALIASES.get(text)
    if kind is None:
        reason = "Could not load config provider class or one of its dependencies. Those there are: "
        raise ConfigValueError(key, properties[key], reason + ", ".join(_KINDS))
    return kind


def _parameters(properties: Mapping[str, str], name: str) -> dict[str, str]:
    return under(f"{NAMES}.{name}.param.", properties)


def read(providers: Mapping[str, ConfigProvider], needed: Iterable[ConfigReference]) -> dict[ConfigReference, str]:
    """Returns the values of the existing references. Raises ConfigProviderError. For threads."""
    by_path: dict[tuple[str, str], list[str]] = {}
    for reference in needed:
        if reference.provider in providers:
            by_path.setdefault((reference.provider, reference.path), []).append(reference.key)
    return {
        ConfigReference(provider, path, key): value
        for (provider, path), keys in by_path.items()
        for key, value in providers[provider].get(path, keys).items()
    }


def _is_name(key: str) -> bool:
    return "/" not in key and "\0" not in key and key not in ("", ".", "..")


def _text(file: str) -> str:
    """Reads a file. Raises OSError, ValueError. Never blocks: neither on a pipe without a writer nor on a device."""
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
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev
