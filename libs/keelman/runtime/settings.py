"""Reads a service's settings: flags over environment over TOML file over default, each with its origin.

A service declares one frozen dataclass whose fields are made by `setting(...)`: type, unit, default, sentence, once.
The reader, `keelman <service> config` and docs/configuration.md all come from that declaration.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from keelman.model.errors import InvalidArgument
from keelman.runtime.logs.redaction import HIDDEN

T = TypeVar("T")

# One file may hold a section for each service; each reads its own and the lines above the sections.
SERVICES = ("gateway", "state", "agent", "broker", "spark", "worker", "kafka_connect")

_REQUIRED: Any = object()


def setting(
    default: Any = _REQUIRED,
    help: str = "",
    *,
    unit: str = "",
    secret: bool = False,
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """Declares one setting. Without a default it must be given."""
    metadata = {
        "help": help,
        "unit": unit,
        "secret": secret,
        "choices": choices,
        "minimum": minimum,
        "maximum": maximum,
    }
    if default is _REQUIRED:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, (dict, list)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The settings that every service has; its own come after these."""

    health_socket: Path | None = setting(None, "Unix socket that also serves gRPC health and reflection.")
    grace_seconds: float = setting(30.0, "How long draining may take before it is cut.", unit="s", minimum=0.1)
    log_level: str = setting("info", "Least severe records to log.", choices=("debug", "info", "warning", "error"))
    log_json: bool = setting(False, "Log records as JSON, one a line.")

    @property
    def end_seconds(self) -> float:
        """How long the process may take to end before it is cut."""
        return self.grace_seconds


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a setting's value came from, for `keelman <service> config`."""

    key: str
    value: Any
    source: str
    help: str
    unit: str
    secret: bool

    @property
    def shown(self) -> str:
        """The value for people; a secret's is hidden."""
        if self.secret and self.value:
            return HIDDEN
        return "" if self.value is None else str(self.value)


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """Settings and the origin of each value."""

    settings: T
    origins: tuple[SettingOrigin, ...]


def load(
    cls: type[T],
    service: str,
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded[T]:
    """Builds `cls` for `service` (e.g. "spark": environment KEELMAN_SPARK_*, TOML keys at the top or in [spark]).

    The section wins over the top; other services' sections are passed over. Flags that are None count as not given.
    Raises InvalidArgument for an unknown key (naming the nearest), an ill-typed or illegal value, a missing required
    setting or an unreadable file.
    """
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    sources: dict[str, tuple[Any, str]] = {}
    for key, value in _from_file(file, service).items():
        known(key, fields, f"in {file}")
        sources[key.replace("-", "_")] = (value, f"file {file}")
    prefix = f"KEELMAN_{service.upper()}_"
    for name, value in (environment or {}).items():
        if name.startswith(prefix):
            key = name.removeprefix(prefix).lower()
            known(key, fields, f"in the environment ({name})")
            sources[key] = (value, f"environment {name}")
    for key, value in (flags or {}).items():
        if value is not None:
            known(key, fields, "on the command line")
            sources[key] = (value, "flag")
    values: dict[str, Any] = {}
    origins = []
    for key, field in fields.items():
        if key in sources:
            raw, source = sources[key]
            values[key] = _convert(f"{service}.{key}", raw, hints[key], field.metadata)
        elif field.default is not dataclasses.MISSING:
            values[key], source = field.default, "default"
        elif field.default_factory is not dataclasses.MISSING:
            values[key], source = field.default_factory(), "default"
        else:
            meta = field.metadata.get("help", "")
            raise InvalidArgument(
                f"{service}.{key} is not set: {meta} Give --{key.replace('_', '-')}, {prefix}{key.upper()} "
                f"or {key} in a TOML file"
            )
        meta = field.metadata
        origins.append(
            SettingOrigin(
                key, values[key], source, meta.get("help", ""), meta.get("unit", ""), meta.get("secret", False)
            )
        )
    return Loaded(cls(**values), tuple(origins))


def _from_file(file: Path | None, service: str) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"settings file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"settings file {file} is not TOML: {error}") from None
    sections = {key for key in (*SERVICES, service) if isinstance(document.get(key), dict)}
    return {k: v for k, v in document.items() if k not in sections} | (document[service] if service in sections else {})


def known(key: str, fields: Mapping[str, Any], where: str) -> None:
    """Raises InvalidArgument, naming the nearest, unless the key is one of the fields (with - or _)."""
    plain = key.replace("-", "_")
    if plain in fields:
        return
    near = difflib.get_close_matches(plain, fields, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise InvalidArgument(f"unknown setting {key!r} {where}{hint} Expected keys: {', '.join(sorted(fields))}")


def _convert(key: str, raw: Any, hint: Any, meta: Mapping[str, Any]) -> Any:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        options = [a for a in typing.get_args(hint) if a is not type(None)]
        if raw is None or raw == "":
            return None
        return _convert(key, raw, options[0], meta)
    if hint is str and meta.get("secret") and isinstance(raw, (Mapping, list, tuple)):
        raise InvalidArgument.of(key, HIDDEN, "a text")
    value = _typed(key, raw, hint, origin)
    choices = meta.get("choices") or ()
    if choices and value not in choices:
        raise InvalidArgument.of(key, raw, "one of " + ", ".join(choices))
    low, high = meta.get("minimum"), meta.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        legal = f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
        raise InvalidArgument.of(key, raw, legal)
    return value


def _typed(key: str, raw: Any, hint: Any, origin: Any) -> Any:  # noqa: PLR0911, PLR0912
    if hint is bool:
        if isinstance(raw, bool):
            return raw
        if str(raw).lower() in ("true", "false"):
            return str(raw).lower() == "true"
        raise InvalidArgument.of(key, raw, "true or false")
    if hint in (int, float):
        try:
            number = hint(raw)
            if (
                isinstance(raw, bool)
                or math.isnan(number)
                or (hint is int and isinstance(raw, float) and number != raw)
            ):
                raise ValueError
            return number
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument.of(key, raw, "a whole number" if hint is int else "a number") from None
    if hint is Path:
        if not isinstance(raw, (str, Path)) or not str(raw):
            raise InvalidArgument.of(key, raw, "a path")
        return Path(raw).expanduser()
    if hint is str:
        if isinstance(raw, (Mapping, list, tuple)):
            raise InvalidArgument.of(key, raw, "a text")
        return str(raw)
    if origin is dict or hint is dict:
        if isinstance(raw, Mapping):
            return {str(k): str(v) for k, v in raw.items()}
        pairs = [p for p in str(raw).split(",") if p]
        if any("=" not in p for p in pairs):
            raise InvalidArgument.of(key, raw, "key=value,key=value")
        return {k.strip(): v.strip() for k, _, v in (p.partition("=") for p in pairs)}
    if origin in (list, tuple):
        if isinstance(raw, Mapping):
            raise InvalidArgument.of(key, raw, "a list, or item,item")
        items = raw if isinstance(raw, (list, tuple)) else [s.strip() for s in str(raw).split(",") if s.strip()]
        texts = [str(i) for i in items]
        return tuple(texts) if origin is tuple else texts
    raise TypeError(f"{key}: settings of type {hint} are not supported")
