"""Sets fields of a dedicated connector's spec by the options of `create` and `update`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.cli import plugin_refs
from keelman.cli.autoscaling import edit_autoscale
from keelman.cli.configuration import pairs
from keelman.cli.specs.edits import NONE, edit_limits, edit_log_delivery, edit_map, selector_of
from keelman.model.errors import InvalidArgument


def edit_dedicated(options: Any, removed: Sequence[str] | None, spec: DedicatedConnectorSpec) -> Iterable[str]:
    """Changes the spec by the given options; yields the paths of these fields. `options` is a Given of
    keelman.cli.specs.fields, `removed` are keys of the configuration. Raises InvalidArgument."""
    if options.bootstrap_servers:
        spec.external.bootstrap_servers = options.bootstrap_servers
        yield "external"
    if options.values or removed:
        edit_map("set", spec.config, options.values, removed)
        yield "config"
    if options.worker_values:
        _edit_properties(options.worker_values, spec)
        yield "properties"
    if options.worker_configuration:
        _name_configuration(options.worker_configuration, spec)
        yield "worker_configuration"
    if options.autoscale:
        edit_autoscale(options.autoscale, options.count, spec.capacity)
        yield "capacity"
    elif options.count is not None:
        spec.capacity.count = options.count
        yield "capacity"
    yield from edit_limits(options.cpus, options.memory, spec.capacity.worker_limits, "capacity")
    if options.node_selector:
        spec.node_selector.clear()
        spec.node_selector.update(selector_of(options.node_selector))
        yield "node_selector"
    for option, path, present, new in (
        ("plugin", "plugins", spec.plugins, options.plugins),
        ("library", "libraries", spec.libraries, options.libraries),
    ):
        if new:
            plugin_refs.edit(option, present, new, ())
            yield path
    yield from edit_log_delivery(options.log_group, options.log_bucket, options.log_topic, spec.log_delivery)
    if options.engine:
        spec.engine = plugin_refs.engine_of(options.engine)
        yield "engine"


def _edit_properties(texts: Sequence[str], spec: DedicatedConnectorSpec) -> None:
    if texts == [NONE]:
        spec.properties.clear()
        return
    spec.properties.update(pairs("--worker-property", texts))


def _name_configuration(text: str, spec: DedicatedConnectorSpec) -> None:
    if text == NONE:
        spec.ClearField("worker_configuration")
        return
    name, colon, revision = text.partition(":")
    if colon and not (revision.isascii() and revision.isdigit()):
        raise InvalidArgument.of("--worker-configuration", text, "NAME, NAME:REVISION or none")
    spec.worker_configuration.name = name
    spec.worker_configuration.revision = int(revision or 0)
