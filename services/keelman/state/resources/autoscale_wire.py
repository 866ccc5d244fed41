"""Translates autoscaling between the model and the wire."""

from __future__ import annotations

from keelman.api.connect.v1 import autoscale_pb2 as pb
from keelman.model import autoscale
from keelman.rpc.mapping import message_of, value_of
from keelman.rpc.times import from_duration, to_duration


def autoscale_message(spec: autoscale.Autoscale) -> pb.Autoscale:
    """Returns the message of autoscaling, complete."""
    return message_of(
        pb.Autoscale, spec,
        sample_period=to_duration(spec.sample_seconds), cool_down=to_duration(spec.cool_down_seconds),
    )  # fmt: skip


def autoscale_of(message: pb.Autoscale) -> autoscale.Autoscale:
    """Returns the autoscaling of a message, with defaults for fields that are 0 or absent."""
    has_period, has_pause = message.HasField("sample_period"), message.HasField("cool_down")
    return value_of(
        autoscale.Autoscale,
        message,
        min_workers=message.min_workers or 1,
        scale_in_cpu_percent=message.scale_in_cpu_percent or autoscale.SCALE_IN_PERCENT,
        scale_out_cpu_percent=message.scale_out_cpu_percent or autoscale.SCALE_OUT_PERCENT,
        sample_seconds=from_duration(message.sample_period) if has_period else autoscale.SAMPLE_SECONDS,
        samples=message.samples or autoscale.SAMPLES,
        cool_down_seconds=from_duration(message.cool_down) if has_pause else autoscale.COOL_DOWN_SECONDS,
    )


def scaling_message(scaling: autoscale.Scaling) -> pb.Scaling | None:
    """Returns the message of the last step; None if there was none."""
    return None if scaling.time is None else message_of(pb.Scaling, scaling)
