"""Parses and formats autoscaling in the command line's form: 1..4,out=70,lag=100000."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.model.errors import InvalidArgument
from keelman.rpc.times import from_duration, to_duration

HELP = (
    "Fewest and most workers, by their load: 1..4, with in=PERCENT, out=PERCENT, lag=RECORDS, every=SECONDS, "
    "samples=N, pause=SECONDS and, of a dedicated connector, tasks=N of each, max-tasks=N, up-to=partitions behind "
    "commas."
)
LEGAL = "MIN..MAX, and behind commas in=PERCENT, out=PERCENT, lag=RECORDS, tasks=N, max-tasks=N, every=SECONDS"
LEGAL += ", samples=N, pause=SECONDS or up-to=partitions"
_BOUNDS = re.compile(r"([0-9]{1,4})\.\.([0-9]{1,4})")
_FIELDS: Mapping[str, tuple[str, type[int] | type[float]]] = {
    "in": ("scale_in_cpu_percent", float), "out": ("scale_out_cpu_percent", float),
    "lag": ("scale_out_lag_records", int), "tasks": ("tasks_per_worker", int), "max-tasks": ("max_tasks", int),
    "every": ("sample_period", float), "samples": ("samples", int), "pause": ("cool_down", float),
}  # fmt: skip
_TIMES = ("sample_period", "cool_down")
_UP_TO_PARTITIONS = "up-to=partitions"


def autoscale_of(text: str) -> Autoscale:
    """Parses the value of --autoscale. Raises InvalidArgument."""
    bounds, *more = text.split(",")
    match = _BOUNDS.fullmatch(bounds.strip())
    if match is None:
        raise InvalidArgument.of("--autoscale", text, LEGAL)
    autoscale = Autoscale(min_workers=int(match[1]), max_workers=int(match[2]))
    for part in more:
        if part.strip() == _UP_TO_PARTITIONS:
            autoscale.tasks_up_to_partitions = True
            continue
        key, _, value = part.strip().partition("=")
        if key not in _FIELDS:
            raise InvalidArgument.of("--autoscale", text, LEGAL)
        field, kind = _FIELDS[key]
        number = _number(kind, value, text)
        if field in _TIMES:
            getattr(autoscale, field).CopyFrom(to_duration(number))
        else:
            setattr(autoscale, field, number)
    return autoscale


def _number(kind: Callable[[str], float], value: str, text: str) -> float:
    try:
        number = kind(value)
        if not 0 <= number < 2**31:
            raise ValueError
    except ValueError:
        raise InvalidArgument.of("--autoscale", text, LEGAL) from None
    return number


def edit_autoscale(text: str, count: int | None, spec: WorkerClusterSpec | DedicatedCapacity) -> None:
    """Sets the autoscaling of a cluster or a dedicated connector. Raises InvalidArgument."""
    if count is not None:
        raise InvalidArgument("--autoscale: not together with --count, which ends it: use one of them")
    spec.autoscale.CopyFrom(autoscale_of(text))


def autoscale_text(autoscale: Autoscale) -> str:
    """Returns autoscaling in the command line's form, for people."""
    every, pause = from_duration(autoscale.sample_period), from_duration(autoscale.cool_down)
    lag = f" or {autoscale.scale_out_lag_records:,} records of lag" if autoscale.scale_out_lag_records else ""
    tasks = f", {autoscale.tasks_per_worker} tasks each" if autoscale.tasks_per_worker else ""
    most = f", at most {autoscale.max_tasks}" if autoscale.max_tasks else ""
    most += ", no more than partitions" if autoscale.tasks_up_to_partitions else ""
    return (
        f"{autoscale.min_workers} to {autoscale.max_workers} workers: out above {autoscale.scale_out_cpu_percent:g} "
        f"%{lag}, in below {autoscale.scale_in_cpu_percent:g} % of processor; {autoscale.samples} samples, "
        f"one each {every:g} s, {pause:g} s between steps{tasks}{most}"
    )
