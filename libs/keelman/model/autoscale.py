"""Autoscaling: the users' rules, and their legal values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from keelman.model.errors import InvalidArgument
from keelman.model.rules.field_checks import MAX_WORKERS

SCALE_IN_PERCENT, SCALE_OUT_PERCENT = 20.0, 80.0
SAMPLE_SECONDS, SAMPLES, COOL_DOWN_SECONDS = 5.0, 3, 60.0
MAX_SAMPLES, LONGEST_SECONDS, SHORTEST_SECONDS = 1000, 86400.0, 1.0
MAX_PERCENT = 1000.0


@dataclass(frozen=True, slots=True)
class Autoscale:
    """The rules by which the number of workers follows their load. Percents are of a worker's limit of processors, of
    one processor if it has no limit. `scale_out_lag_records` 0: lag does not count; `tasks_per_worker` 0: tasks.max is
    that of the configuration; `max_tasks` 0: no bound; `tasks_up_to_partitions`: a sink has no more tasks than its
    topics have partitions."""

    min_workers: int
    max_workers: int
    scale_in_cpu_percent: float = SCALE_IN_PERCENT
    scale_out_cpu_percent: float = SCALE_OUT_PERCENT
    scale_out_lag_records: int = 0
    tasks_per_worker: int = 0
    max_tasks: int = 0
    tasks_up_to_partitions: bool = False
    sample_seconds: float = SAMPLE_SECONDS
    samples: int = SAMPLES
    cool_down_seconds: float = COOL_DOWN_SECONDS

    def bounded(self, workers: int) -> int:
        """Returns the nearest legal number of workers."""
        return min(max(workers, self.min_workers), self.max_workers)

    def tasks_max(self, workers: int, partitions: int = 0) -> int:
        """Returns `tasks.max` for this number of workers; 0: that of the configuration. `partitions`: the number of
        partitions to read; 0 if unknown."""
        tasks = workers * self.tasks_per_worker
        bounds = (self.max_tasks, partitions if self.tasks_up_to_partitions else 0)
        return min(tasks, *filter(None, bounds)) if any(bounds) else tasks


@dataclass(frozen=True, slots=True)
class Scaling:
    """A step: the number of workers since, the number before, when and why."""

    workers: int = 0
    former_workers: int = 0
    time: datetime | None = None
    reason: str = ""


NOT_SCALED = Scaling()


def check_autoscale(field: str, autoscale: Autoscale) -> None:
    """Raises InvalidArgument naming the field at fault, its value and the legal values."""
    _check(f"{field}.min_workers", autoscale.min_workers, 1, MAX_WORKERS)
    _check(f"{field}.max_workers", autoscale.max_workers, autoscale.min_workers, MAX_WORKERS)
    _check(f"{field}.scale_out_cpu_percent", autoscale.scale_out_cpu_percent, 1, MAX_PERCENT)
    if not 0 < autoscale.scale_in_cpu_percent < autoscale.scale_out_cpu_percent:
        legal = f"more than 0 and less than scale_out_cpu_percent ({autoscale.scale_out_cpu_percent:g})"
        raise InvalidArgument.of(f"{field}.scale_in_cpu_percent", autoscale.scale_in_cpu_percent, legal)
    for name in ("scale_out_lag_records", "tasks_per_worker", "max_tasks"):
        if (number := getattr(autoscale, name)) < 0:
            raise InvalidArgument.of(f"{field}.{name}", number, "0 or more")
    if autoscale.max_tasks and not autoscale.tasks_per_worker:
        raise InvalidArgument.of(f"{field}.max_tasks", autoscale.max_tasks, "0 where tasks_per_worker is 0")
    if autoscale.tasks_up_to_partitions and not autoscale.tasks_per_worker:
        raise InvalidArgument.of(f"{field}.tasks_up_to_partitions", True, "false where tasks_per_worker is 0")
    if autoscale.max_tasks and autoscale.max_tasks < autoscale.max_workers:
        legal = f"0 or at least max_workers ({autoscale.max_workers})"
        raise InvalidArgument.of(f"{field}.max_tasks", autoscale.max_tasks, legal)
    _check(f"{field}.samples", autoscale.samples, 1, MAX_SAMPLES)
    _check(f"{field}.sample_period", autoscale.sample_seconds, SHORTEST_SECONDS, LONGEST_SECONDS, " s")
    _check(f"{field}.cool_down", autoscale.cool_down_seconds, 0, LONGEST_SECONDS, " s")


def check_no_tasks(field: str, autoscale: Autoscale) -> None:
    """Raises InvalidArgument where tasks would follow workers that are not those of one connector."""
    if autoscale.tasks_per_worker:
        legal = "0: only the tasks.max of a dedicated connector follows its workers"
        raise InvalidArgument.of(f"{field}.tasks_per_worker", autoscale.tasks_per_worker, legal)


def _check(field: str, value: float, least: float, most: float, unit: str = "") -> None:
    if not least <= value <= most:
        raise InvalidArgument.of(field, f"{value:g}{unit}", f"{least:g} to {most:g}{unit}")
