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


def edit_dedicated(given: Any, removed: Sequence[str] | None, spec: DedicatedConnectorSpec) -> Iterable[str]:
    """Changes the spec by the given options; yields the paths of the given fields. `given` is a Given of
    keelman.cli.specs.fields, `removed` are keys of the configuration. Raises InvalidArgument."""
    if given.bootstrap_servers:
        spec.external.bootstrap_servers = given.bootstrap_servers
        yield "external"
    if given.values or removed:
        edit_map("set", spec.config, given.values, removed)
        yield "config"
    if given.worker_values:
        _edit_properties(given.worker_values, spec)
        yield "properties"
    if given.worker_configuration:
        _name_configuration(given.worker_configuration, spec)
        yield "worker_configuration"
    if given.autoscale:
        edit_autoscale(given.autoscale, given.count, spec.capacity)
        yield "capacity"
    elif given.count is not None:
        spec.capacity.count = given.count
        yield "capacity"
    yield from edit_limits(given.cpus, given.memory, spec.capacity.worker_limits, "capacity")
    if given.node_selector:
        spec.node_selector.clear()
        spec.node_selector.update(selector_of(given.node_selector))
        yield "node_selector"
    for option, path, present, new in (
        ("plugin", "plugins", spec.plugins, given.plugins),
        ("library", "libraries", spec.libraries, given.libraries),
    ):
        if new:
            plugin_refs.edit(option, present, new, ())
            yield path
    yield from edit_log_delivery(given.log_group, given.log_bucket, given.log_topic, spec.log_delivery)
    if given.engine:
        spec.engine = plugin_refs.engine_of(given.engine)
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
