"""Sets fields of a Spark cluster's spec by the options of `create` and `update`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from keelman.api.connect.v1.spark_cluster_pb2 import SparkClusterSpec
from keelman.cli.sizes import size_of
from keelman.cli.specs.edits import NONE, edit_map, edit_nodes
from keelman.model.errors import InvalidArgument

if TYPE_CHECKING:
    from keelman.cli.specs.options import Given, GivenChange

MIB = 1 << 20


def edit_spark(options: Given, change: GivenChange | None, spec: SparkClusterSpec) -> Iterable[str]:
    """Sets the fields of the given options; yields the paths of the changed fields. Raises InvalidArgument."""
    if options.nodes or (change and (change.add_nodes or change.remove_nodes)):
        spec.nodes[:] = [] if options.nodes == NONE else edit_nodes(options.nodes, change, spec.nodes)
        yield "nodes"
    if options.values or (change and change.unset):
        edit_map("set", spec.properties, options.values, change.unset if change else None)
        yield "properties"
    if options.executor_memory:
        spec.executor_memory_mb = _whole_mib(options.executor_memory)
        yield "executor_memory_mb"
    for name in ("master", "drivers", "executor_cores", "executor_python", "tenant"):
        if getattr(options, name) is not None:
            setattr(spec, name, getattr(options, name))
            yield name


def _whole_mib(text: str) -> int:
    """Returns a size in MiB. Raises InvalidArgument unless it is a whole number of them."""
    size = size_of("--executor-memory", text)
    if size % MIB:
        raise InvalidArgument.of("--executor-memory", text, "whole MiB, e.g. 1GiB; 0 for the nodes' settings")
    return size // MIB
