"""Decides which streams of this node are delivered where, and runs the deliveries as its workers' plans change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keelman.agent.shipping.bucket_keys import BucketKeys
from keelman.agent.shipping.bucket_target import BucketTarget, opened_store
from keelman.agent.shipping.delivery import Delivery
from keelman.agent.shipping.file_target import FileTarget
from keelman.agent.shipping.lines import worker_id
from keelman.agent.shipping.progress import DeliveryProgress
from keelman.agent.shipping.source import Stream
from keelman.agent.shipping.target import LogTarget
from keelman.agent.shipping.topic_target import TopicTarget
from keelman.agent.workloads.logs import log_file
from keelman.api.node.v1.workload_pb2 import LogProblem, LogTargets, Workload, WorkloadGoal
from keelman.model.workload import spark_name
from keelman.runtime.home import Home
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.parts import Keeping
from keelman.runtime.supervise import Siblings

log = get_logger()
FILE, S3, KAFKA = "file", "s3", "kafka"
PUTS = 4
"""Objects that are in memory at a time."""
FINISH_SECONDS = 15.0
"""The time for which the end of a log that will be removed waits for its targets."""


@dataclass(frozen=True, slots=True)
class ShippingLimits:
    """`root`: the parent folder of delivered files. Objects are put when they hold so many bytes of a log, or so
    late."""

    root: Path
    object_bytes: int = 8 << 20
    object_seconds: float = 60.0
    keeping: Keeping = Keeping()  # noqa: RUF009  (frozen)


class Shipping:
    """The deliveries of one node. `node` is its name."""

    def __init__(self, home: Home, node: str, limits: ShippingLimits, keys: BucketKeys | None = None) -> None:
        self._keys = keys or BucketKeys(bucket_keys_file(home))
        self._home = home
        self._node = node
        self._limits = limits
        self._running: dict[tuple[str, str], RunningDelivery] = {}
        self._begun: tuple[Siblings, Callable[[str], None]] | None = None
        self._puts = asyncio.Semaphore(PUTS)

    def begin(self, siblings: Siblings, workloads: Iterable[Workload], on_problem: Callable[[str], None]) -> None:
        """Has deliveries run in this group from now on. Calls `on_problem` with a worker whose `problems` have
        changed."""
        self._begun = siblings, on_problem
        self.follow(workloads)

    def follow(self, workloads: Iterable[Workload]) -> None:
        """Begins and ends deliveries as these workloads require. Those of a workload that will be removed continue
        until `finish`."""
        if self._begun is None:
            return
        siblings, on_problem = self._begun
        expected: dict[tuple[str, str], tuple[StreamDelivery, bool]] = {}
        for workload in workloads:
            stays = workload.goal != WorkloadGoal.WORKLOAD_GOAL_REMOVED
            for stream_delivery in self._wanted(workload):
                expected[stream_delivery.key] = (
                    stream_delivery,
                    stays or expected.get(stream_delivery.key, (stream_delivery, False))[1],
                )
        for key in [key for key, run in self._running.items() if key not in expected]:
            self._running.pop(key).task.cancel()
        for key, (stream_delivery, stays) in expected.items():
            run = self._running.get(key)
            if (run is None and not stays) or (run is not None and run.wanted == stream_delivery):
                continue
            if run is not None:
                run.task.cancel()
            delivery = self._made(stream_delivery, on_problem)
            task = siblings.start(delivery.run(run.task if run else None), name=f"delivery {'/'.join(key)}")
            self._running[key] = RunningDelivery(stream_delivery, delivery, task)

    def problems(self, workload: str) -> list[LogProblem]:
        """Returns the problems of a worker's deliveries that are impossible now, in the order of streams and
        targets."""
        problems = [run.delivery.shown for _, run in sorted(self._running.items()) if run.wanted.for_worker == workload]
        return [problem for problem in problems if problem is not None]

    def needed(self, workload: str) -> int | None:
        """Returns the position in a workload's log that not all targets have yet; None when no delivery waits for
        it."""
        return min((run.delivery.position for run in self._of(workload)), default=None)

    async def finish(self, workload: str, others: Iterable[Workload]) -> None:
        """Delivers the rest of a log whose process has ended for good, before it is removed, and forgets its streams;
        those of slots too, when none of the `others` has them. Does not wait long for a target that is away: its
        missing lines are then logged."""
        left = {
            stream_delivery.key
            for w in others
            if w.goal != WorkloadGoal.WORKLOAD_GOAL_REMOVED
            for stream_delivery in self._wanted(w)
        }
        of_it = {run.wanted.key for run in self._of(workload)}
        of_it |= {run.wanted.key for run in self._running.values() if run.wanted.for_worker == workload} - left
        ending = {key: self._running[key] for key in of_it}
        done = await asyncio.gather(*(run.delivery.finish(FINISH_SECONDS) for run in ending.values()))
        for (key, run), is_done in zip(ending.items(), done, strict=True):
            if not is_done:
                position, problem = run.delivery.position, run.delivery.problem
                log.error("log_end_lost", stream=key[0], target=key[1], position=position, error=problem)
            run.task.cancel()
            await asyncio.wait([run.task])
            if self._running.get(key) is run:
                del self._running[key]
            self._file(key).unlink(missing_ok=True)

    def _of(self, workload: str) -> list[RunningDelivery]:
        return [run for run in self._running.values() if run.wanted.stream.workload == workload]

    def _wanted(self, workload: Workload) -> Iterator[StreamDelivery]:
        if workload.spec.WhichOneof("kind") != "worker" or not workload.spec.worker.HasField("log_targets"):
            return
        spec = workload.spec.worker
        number = workload.name.rpartition("/")[2]
        own = Stream(
            f"{spec.worker_cluster}-{number}", workload.name, log_file(self._home.workload(workload.name)),
            worker_id(workload.uid),
        )  # fmt: skip
        streams = [own]
        if not spec.kafka_connect and not spec.spark_cluster:  # the slots of a Spark cluster log on its executors
            spark = spark_name(self._node, spec.tenant)
            streams.append(
                Stream(
                    f"{spec.worker_cluster}-slots-{self._node}", spark, log_file(self._home.workload(spark)),
                    worker_id(f"{spec.worker_cluster}/{self._node}"), about=spec.worker_cluster,
                )
            )  # fmt: skip
        targets = spec.log_targets
        for stream in streams:
            for kind, is_wanted in ((FILE, targets.file_group), (S3, targets.bucket), (KAFKA, targets.topic)):
                if is_wanted:
                    properties = dict(spec.properties) if kind == KAFKA else {}
                    yield StreamDelivery(stream, kind, _only(targets, kind), properties, workload.name)

    def _made(self, stream_delivery: StreamDelivery, on_problem: Callable[[str], None]) -> Delivery:
        file = self._file(stream_delivery.key)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Delivery(
            stream_delivery.stream,
            stream_delivery.kind,
            file,
            lambda keep: self._target(stream_delivery, keep),
            lambda: on_problem(stream_delivery.for_worker),
        )

    def _target(self, stream_delivery: StreamDelivery, keep: Callable[[DeliveryProgress], None]) -> LogTarget:
        targets, limits, stream = stream_delivery.targets, self._limits, stream_delivery.stream
        folder = f"{targets.name}/{stream.name}"
        if stream_delivery.kind == FILE:
            path = limits.root / targets.file_group.strip("/") / folder
            return FileTarget(path, limits.keeping)
        if stream_delivery.kind == S3:
            key = "/".join(filter(None, (targets.prefix.strip("/"), folder)))
            return BucketTarget(
                lambda: opened_store(
                    targets.buckets, targets.region, targets.bucket, self._keys.of(targets.buckets)
                ), key, keep, self._puts, limits.object_bytes, limits.object_seconds,
            )  # fmt: skip
        name = f"keelman-logs-{self._node}-{stream.name}"
        return TopicTarget(stream_delivery.properties, targets.topic, folder, name)

    def _file(self, key: tuple[str, str]) -> Path:
        return self._home.root / "agent" / "delivered" / key[0] / f"{key[1]}.json"


def bucket_keys_file(home: Home) -> Path:
    """Returns the agent's file of bucket keys."""
    return home.root / "agent" / "bucket-keys.json"


@dataclass(frozen=True, slots=True)
class StreamDelivery:
    """One stream to one target."""

    stream: Stream
    kind: str
    targets: LogTargets
    properties: Mapping[str, str]
    for_worker: str = field(compare=False)
    """The worker that has it delivered; for a stream of slots any such worker."""

    @property
    def key(self) -> tuple[str, str]:
        """The stream's name and the kind of target."""
        return self.stream.name, self.kind


@dataclass(frozen=True, slots=True)
class RunningDelivery:
    """A delivery that is under way."""

    wanted: StreamDelivery
    delivery: Delivery
    task: asyncio.Task[None]


def _only(targets: LogTargets, kind: str) -> LogTargets:
    """Returns the settings of one target: a change of another's must not touch it."""
    log_targets = LogTargets(name=targets.name)
    if kind == FILE:
        log_targets.file_group = targets.file_group
    elif kind == S3:
        log_targets.bucket, log_targets.prefix = targets.bucket, targets.prefix
        log_targets.buckets, log_targets.region = targets.buckets, targets.region
    else:
        log_targets.topic = targets.topic
    return log_targets
