"""What becomes of a source's record before it is bytes: transforms, then converters, all of them Java's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keelman.connect.tolerance import Stage, converter_stage
from keelman.connectors.java.configs import string_map
from keelman.connectors.java.errors import translated
from keelman.connectors.java.java_step import JavaStep
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.transforms import java_transforms


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
    """As a connector's configuration has them, else its worker's. Raises ConfigValueError, ConnectError."""
    key, value, headers = (java_converter(loader, role, config, worker) for role in ("key", "value", "header"))
    return SourceSteps(key, value, headers, java_transforms(loader, config))


_DEFAULTS = {"header": "org.apache.kafka.connect.storage.SimpleHeaderConverter"}


def java_converter(loader: PluginLoader, role: str, config: Mapping[str, str], worker: Mapping[str, str]) -> Any:
    """The converter of keys, values or headers (`role` is key, value or header), configured; the connector's own where
    it names one. Raises ConnectError for what the class throws."""
    name = f"{role}.converter"
    whose = config if name in config else worker
    named = whose.get(name, _DEFAULTS.get(role, "org.apache.kafka.connect.json.JsonConverter"))
    class_name = loader.full_name(named)
    options = string_map({k.removeprefix(f"{name}."): v for k, v in whose.items() if k.startswith(f"{name}.")})
    with loader.entered(), translated(f"{name}={class_name}"):
        made = loader.load(class_name)()
        if role == "header":
            options.put("converter.type", "header")
            made.configure(options)
        else:
            made.configure(options, role == "key")
    return made
