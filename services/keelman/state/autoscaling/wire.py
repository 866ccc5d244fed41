"""Autoscaling on the wire."""

from __future__ import annotations

from keelman.api.connect.v1 import autoscale_pb2 as pb
from keelman.model.autoscale import (
    COOL_DOWN_SECONDS,
    SAMPLE_SECONDS,
    SAMPLES,
    SCALE_IN_PERCENT,
    SCALE_OUT_PERCENT,
    Autoscale,
    Scaling,
)
from keelman.rpc.times import from_duration, to_duration, to_timestamp

_NUMBERS = ("min_workers", "max_workers", "scale_out_lag_records", "tasks_per_worker", "max_tasks", "samples")
_PERCENTS = ("scale_in_cpu_percent", "scale_out_cpu_percent")


def autoscale_message(wanted: Autoscale) -> pb.Autoscale:
    """Autoscaling on the wire, complete."""
    return pb.Autoscale(
        **{name: getattr(wanted, name) for name in (*_NUMBERS, *_PERCENTS)},
        sample_period=to_duration(wanted.sample_seconds),
        cool_down=to_duration(wanted.cool_down_seconds),
    )


def autoscale_of(message: pb.Autoscale) -> Autoscale:
    """Autoscaling, with defaults for what is 0 or absent."""
    has_period, has_pause = message.HasField("sample_period"), message.HasField("cool_down")
    return Autoscale(
        min_workers=message.min_workers or 1,
        max_workers=message.max_workers,
        scale_in_cpu_percent=message.scale_in_cpu_percent or SCALE_IN_PERCENT,
        scale_out_cpu_percent=message.scale_out_cpu_percent or SCALE_OUT_PERCENT,
        scale_out_lag_records=message.scale_out_lag_records,
        tasks_per_worker=message.tasks_per_worker,
        max_tasks=message.max_tasks,
        sample_seconds=from_duration(message.sample_period) if has_period else SAMPLE_SECONDS,
        samples=message.samples or SAMPLES,
        cool_down_seconds=from_duration(message.cool_down) if has_pause else COOL_DOWN_SECONDS,
    )


def scaling_message(scaling: Scaling) -> pb.Scaling | None:
    """The last step; None where there was none."""
    if scaling.time is None:
        return None
    return pb.Scaling(
        workers=scaling.workers, former_workers=scaling.former_workers, time=to_timestamp(scaling.time),
        reason=scaling.reason,
    )  # fmt: skip
