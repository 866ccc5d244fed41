"""Formats sizes, quantities, limits, ports, labels, a host's figures and the progress of a rollout for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from keelman.api.connect.v1.worker_cluster_pb2 import ROLLOUT_STATE_HALTED
from keelman.cli.autoscaling import autoscale_text


def size(amount: float) -> str:
    """Returns a number of bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def quantity(number: int, noun: str) -> str:
    """Returns a number with its noun for people: 1 record, 1,200 records."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def labels_text(labels: Mapping[str, str]) -> str:
    """Returns labels in the command line's form: disk=ssd,zone=a."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def capacity_text(capacity: Any) -> str:
    """Returns the capacity of a node, or of a dedicated connector with its workers."""
    if not isinstance(capacity, DedicatedCapacity):
        return limits_text(capacity)
    each = limits_text(capacity.worker_limits)
    autoscaled = capacity.WhichOneof("workers") == "autoscale"
    how_many = autoscale_text(capacity.autoscale) if autoscaled else quantity(capacity.count, "worker")
    return how_many + (f", {each} each" if each else "")


def limits_text(limits: Any) -> str:
    """Returns limits for people: 1.5 processors, 512.0 MiB of memory; empty for none."""
    cpus = f"{limits.cpus:g} processor{'' if limits.cpus == 1 else 's'}" if limits.cpus else ""
    memory = f"{size(limits.memory_bytes)} of memory" if limits.memory_bytes else ""
    return ", ".join(filter(None, (cpus, memory)))


def figures_text(figures: Any) -> str:
    """Returns the used and free resources of a host, for people."""
    return (
        f"{figures.cpus_used:.1f} processors used, {size(figures.memory_available_bytes)} of memory and "
        f"{size(figures.disk_free_bytes)} of disk free, load {figures.load:.2f}"
    )


def owner_text(origin: Any) -> str:
    """Returns the dedicated connector that owns a worker cluster, as commands name it: dc orders. Empty for none."""
    return f"dc {origin.key}" if (origin.api, origin.scope) == ("keelman", "dedicated_connector") else ""


def origin_text(origin: Any) -> str:
    """Returns the origin of a resource: ohara, default, wk00."""
    return ", ".join(filter(None, (origin.api, origin.scope, origin.key)))


def ports_text(spec: Any) -> str:
    """Returns the fixed ports of a worker cluster: rest 8083, metrics 9400, reserved 9500 9501; empty for none."""
    named = (("rest", spec.port), ("metrics", spec.metrics_port), ("admin", spec.admin_port))
    texts = [f"{name} {port}" for name, port in named if port]
    if spec.reserved_ports:
        texts.append("reserved " + " ".join(map(str, spec.reserved_ports)))
    return ", ".join(texts)


def rollout_text(rollout: Any) -> str:
    """Returns the progress of a rollout: 1 of 3 workers has the change; worker demo/1 did not come up: why."""
    done = rollout.updated_workers
    text = f"{done} of {quantity(rollout.workers, 'worker')} {'has' if done == 1 else 'have'} the change"
    worker, message = rollout.worker.removeprefix("worker/"), " ".join(rollout.message.split())
    reason = f": {message}" if message else ""
    if rollout.state == ROLLOUT_STATE_HALTED:
        return f"{text}; worker {worker} did not come up{reason}; the others keep their former settings"
    return f"{text}; worker {worker} gets it now{reason}" if worker else text + reason


def whole_numbers(value: Any) -> Any:
    """Returns JSON with whole numbers as int: a Struct has 1024 as 1024.0."""
    if isinstance(value, dict):
        return {key: whole_numbers(value) for key, value in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
