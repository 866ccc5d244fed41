"""Reasons why slots wait for a cluster, by name and with figures. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.model.workload import NO_EXECUTORS, SPARK_LOST, SPARK_STARTING, WAITING_FOR_CORES


@dataclass(frozen=True, slots=True)
class Shortage:
    """`reason` is NO_EXECUTORS, WAITING_FOR_CORES, SPARK_LOST or SPARK_STARTING. `cores` are those that executors have
    for this service, `wanted` those that its slots need."""

    reason: str
    message: str
    cores: int = 0
    wanted: int = 0

    @property
    def nothing_runs(self) -> bool:
        """Whether no slot can run, so that workers give their tasks back."""
        return self.reason != WAITING_FOR_CORES


def no_executors(master: str, wanted: int) -> Shortage:
    """Returns why slots wait for `wanted` cores without any executor; `master` is its name for people."""
    message = (
        f"0 of {wanted} cores: {master} gives it no executor: start workers of that cluster, or give them free cores "
        "and memory for one"
    )
    return Shortage(NO_EXECUTORS, message, 0, wanted)


def waiting_for_cores(master: str, cores: int, wanted: int) -> Shortage:
    """Returns the reason of slots that wait while others run."""
    message = (
        f"{cores} of {wanted} cores: {master} has no more free ones: start workers of that cluster, or give it more"
    )
    return Shortage(WAITING_FOR_CORES, f"{message} (SPARK_WORKER_CORES)", cores, wanted)


def spark_lost(message: str) -> Shortage:
    """Returns the reason of slots that wait for another session."""
    return Shortage(SPARK_LOST, message)


def spark_starting() -> Shortage:
    """Returns the reason of slots that wait for the first session of a standby."""
    return Shortage(SPARK_STARTING, "this Spark service was a standby without an application, and starts Spark now")
