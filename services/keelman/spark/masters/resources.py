"""Computes the resources of a standalone cluster that a service needs for its slots. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.model.errors import InvalidArgument
from keelman.spark.settings import Settings
from keelman.workers.spark_master import Master, MasterKind

IDLE_SECONDS = 60
# Executors mostly pass bytes on, so theirs is tuned for a quick start and a small size, as the driver's JVM.
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xss512k"
MOST_CORES, EXECUTOR_CORES, INSTANCES = "spark.cores.max", "spark.executor.cores", "spark.executor.instances"
DYNAMIC = "spark.dynamicAllocation"


def resources(settings: Settings, master: Master, own: Mapping[str, str]) -> dict[str, str]:
    """Returns Spark's properties for cores, memory and number of executors; none for other masters, whose
    administrators set them. `own` are properties of the user, which win and are not repeated.

    A slot is a task of one core for as long as it lives. Spark starts executors while slots wait, up to
    `spark.cores.max`, and ends those without a slot: so several services share a cluster. With a fixed
    `spark.executor.instances` the number does not change. Raises InvalidArgument for texts that are no numbers.
    """
    if master.kind is not MasterKind.STANDALONE:
        return {}
    cores = _number(own, EXECUTOR_CORES) or settings.executor_cores
    slot = settings.java_slot_memory_mb if master.near else settings.native_slot_memory_mb
    instances = _number(own, INSTANCES)
    executors = instances or -(-(_number(own, MOST_CORES) or settings.max_slots) // cores)
    needed = {
        MOST_CORES: str(executors * cores),
        "spark.task.cpus": "1",
        EXECUTOR_CORES: str(cores),
        "spark.executor.memory": f"{settings.executor_memory_mb}m",
        "spark.executor.memoryOverhead": f"{slot * cores}m",
        "spark.executor.extraJavaOptions": QUICK,
        f"{DYNAMIC}.enabled": "false" if instances else "true",
    }
    if not instances:
        needed |= {
            f"{DYNAMIC}.shuffleTracking.enabled": "true",
            f"{DYNAMIC}.minExecutors": "0",
            f"{DYNAMIC}.initialExecutors": "1",
            f"{DYNAMIC}.maxExecutors": str(executors),
            f"{DYNAMIC}.executorIdleTimeout": f"{IDLE_SECONDS}s",
            f"{DYNAMIC}.schedulerBacklogTimeout": "1s",
            f"{DYNAMIC}.sustainedSchedulerBacklogTimeout": "1s",
        }
    return {key: value for key, value in needed.items() if key not in own}


def cores_of(settings: Settings, master: Master, own: Mapping[str, str]) -> int | None:
    """Returns the most cores that a cluster's executors may have for this service; None for a local master.

    A Spark Connect server shows none: as many as there may be slots. Raises InvalidArgument as `resources` does.
    """
    if not master.remote:
        return None
    most = {**resources(settings, master, own), **own}.get(MOST_CORES) if master.kind is MasterKind.STANDALONE else None
    return settings.max_slots if most is None else int(most)


def _number(own: Mapping[str, str], name: str) -> int:
    """Returns a number of the user's properties, 0 for none. Raises InvalidArgument."""
    text = own.get(name, "")
    if text and (not text.strip().isdecimal() or not int(text)):
        raise InvalidArgument.of("spark.spark_properties", f"{name}={text}", "a number, 1 at least")
    return int(text or 0)
