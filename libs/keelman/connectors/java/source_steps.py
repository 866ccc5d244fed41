"""What becomes of a source's record before it is bytes: transforms, then converters, all of them Java's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keelman.connect.tolerance import Stage, converter_stage
from keelman.connectors.java.jvm import java_class
from keelman.connectors.java.plugin_loader import PluginLoader


@dataclass(frozen=True, slots=True)
class JavaStep:
    """One transform: `target` has a public method `apply` of the Java class `kind`, which takes a `parameter`."""

    target: Any
    kind: Any
    parameter: Any
    stage: Stage


@dataclass(frozen=True, slots=True)
class SourceSteps:
    """Of one task. `key` and `value` are Converters, `headers` is a HeaderConverter; all are configured."""

    key: Any
    value: Any
    headers: Any
    transforms: Sequence[JavaStep] = ()

    def stage(self, role: str) -> Stage:
        """Of one of the converters."""
        found = {"key": self.key, "value": self.value, "header": self.headers}[role]
        return converter_stage(role, str(found.getClass().getName()))


def source_steps(loader: PluginLoader, config: Mapping[str, str], worker: Mapping[str, str]) -> SourceSteps:
    """As a connector's configuration has them, else its worker's."""
    return SourceSteps(*(_converter(loader, role, config, worker) for role in ("key", "value", "header")))


_DEFAULTS = {"header": "org.apache.kafka.connect.storage.SimpleHeaderConverter"}


def _converter(loader: PluginLoader, role: str, config: Mapping[str, str], worker: Mapping[str, str]) -> Any:
    name = f"{role}.converter"
    whose = config if name in config else worker
    made = loader.load(whose.get(name, _DEFAULTS.get(role, "org.apache.kafka.connect.json.JsonConverter")))()
    options = java_class("java.util.HashMap")()
    for key, value in whose.items():
        if key.startswith(f"{name}."):
            options.put(key.removeprefix(f"{name}."), value)
    with loader.entered():
        if role == "header":
            options.put("converter.type", "header")
            made.configure(options)
        else:
            made.configure(options, role == "key")
    return made
