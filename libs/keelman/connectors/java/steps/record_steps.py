"""Makes the transforms and converters between a Java task's records and bytes, all of them Java objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.connect.failed_record import Stage, converter_stage
from keelman.connect.registry.interface import OpenRegistry
from keelman.connectors.java.border.python_converter import OURS_ALONE, python_converter
from keelman.connectors.java.configs import string_map
from keelman.connectors.java.errors import translated
from keelman.connectors.java.jvm import java_class
from keelman.connectors.java.plugin_loader import VERSION, PluginLoader
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.connectors.java.steps.transforms import JavaStep, java_transforms
from keelman.engine.records.registries import open_registry


@dataclass(frozen=True, slots=True)
class RecordSteps:
    """The steps of one task. `key` and `value` are Converters, `headers` is a HeaderConverter; all are configured.
    `names` are the classes, by role, of converters that are not Java's. `metrics` are the task's, including the
    steps'."""

    key: Any
    value: Any
    headers: Any
    metrics: PluginMetrics
    transforms: Sequence[JavaStep] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def stage(self, role: str) -> Stage:
        """Returns the stage of a converter."""
        converter = {"key": self.key, "value": self.value, "header": self.headers}[role]
        return converter_stage(role, self.names.get(role) or str(converter.getClass().getName()))

    def read_headers(self, topic: Any, raw: Any) -> Any:
        """Converts Kafka's headers to Connect's. Raises the converter's exceptions."""
        headers = java_class("org.apache.kafka.connect.header.ConnectHeaders")()
        for header in raw:
            headers.add(header.key(), self.headers.toConnectHeader(topic, header.key(), header.value()))
        return headers

    def written_headers(self, record: Any) -> Any:
        """Converts a record's headers to Kafka's. Raises the converter's exceptions."""
        java_headers = java_class("org.apache.kafka.common.header.internals.RecordHeaders")()
        for header in record.headers():
            java_headers.add(
                header.key(),
                self.headers.fromConnectHeader(record.topic(), header.key(), header.schema(), header.value()),
            )
        return java_headers


def record_steps(
    loader: PluginLoader,
    config: Mapping[str, str],
    worker: Mapping[str, str],
    registries: OpenRegistry = open_registry,
    metrics: PluginMetrics | None = None,
) -> RecordSteps:
    """Returns the steps of a connector's configuration, else of its worker's. Converters with a schema registry are
    ours if the plugin brings none; `registries` opens it for them. `metrics` are the task's, to which Java's steps add
    theirs; None discards these. Raises ConfigValueError, ConnectError."""
    metrics = metrics or PluginMetrics({})
    converters: dict[str, Any] = {}
    names: dict[str, str] = {}
    for role in ("key", "value", "header"):
        class_name = _named(loader, role, config, worker)
        if class_name in OURS_ALONE and role != "header" and not loader.has(class_name):
            names[role] = class_name
            converters[role] = python_converter(role, config, worker, registries)
        else:
            converters[role] = java_converter(loader, role, config, worker)
            with loader.entered(), translated(f"{role}.converter"):
                metrics.give(converters[role], converter=role)
    transforms = java_transforms(loader, config, metrics)
    return RecordSteps(converters["key"], converters["value"], converters["header"], metrics, transforms, names)


_DEFAULTS = {"header": "org.apache.kafka.connect.storage.SimpleHeaderConverter"}


def java_converter(loader: PluginLoader, role: str, config: Mapping[str, str], worker: Mapping[str, str]) -> Any:
    """Returns the configured converter of keys, values or headers (`role` is key, value or header); the connector's own
    if it names one. Raises ConfigValueError for a missing version, ConnectError for the class's exceptions."""
    name, class_name = f"{role}.converter", _named(loader, role, config, worker)
    whose = _whose(role, config, worker)
    options = string_map({k.removeprefix(f"{name}."): v for k, v in whose.items() if k.startswith(f"{name}.")})
    version = f"{name}.{VERSION}"
    plugin = loader.of(class_name, whose.get(version), version)
    with plugin.entered(), translated(f"{name}={class_name}"):
        converter = plugin.load(class_name)()
        if role == "header":
            options.put("converter.type", "header")
            converter.configure(options)
        else:
            converter.configure(options, role == "key")
    return converter


def _named(loader: PluginLoader, role: str, config: Mapping[str, str], worker: Mapping[str, str]) -> str:
    """Returns the full name of a role's converter."""
    named = _whose(role, config, worker).get(f"{role}.converter", "").strip()
    return loader.full_name(named or _DEFAULTS.get(role, "org.apache.kafka.connect.json.JsonConverter"))


def _whose(role: str, config: Mapping[str, str], worker: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the configuration that names the converter: the connector's, else the worker's."""
    return config if config.get(f"{role}.converter", "").strip() else worker
