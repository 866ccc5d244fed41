"""Creates, changes and deletes Spark clusters, each in its caller's transaction, and checks who may name them."""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections.abc import Callable

from keelman.model.cluster import WorkerClusterSpec, WorkerEngine
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.rules.names import MAX_NAMED, checked_name
from keelman.model.spark_cluster import DRIVERS, MAX_DRIVERS, MIN_HEAP_MB, SparkCluster, SparkClusterSpec
from keelman.state.resources.annotations import check_annotations
from keelman.state.resources.checks import check_free, check_nodes, check_same, present
from keelman.state.resources.snapshot import SPARK_CLUSTER, Snapshot
from keelman.state.resources.transaction import Transaction
from keelman.workers.spark_master import Master

LEGAL_MASTER = (
    "spark://host:port (a standalone cluster) or sc://host:port (a Spark Connect server); local[n,1] is for the Spark "
    "service of each node, without a spark cluster"
)
MAX_CORES = 1024
MAX_HEAP_MB = 1 << 20
_PROPERTY = re.compile(r"spark\.[A-Za-z0-9_.-]{1,200}")
OWN_PROPERTIES = ("spark.master", "spark.app.name", "spark.submit.deployMode")
"""Properties that keelman sets by other fields."""


def create(tx: Transaction, name: str, spec: SparkClusterSpec) -> SparkCluster:
    """Stores a new Spark cluster. Its drivers are placed when a worker cluster that names it runs."""
    check_free("spark cluster", name, tx.snapshot.spark_clusters)
    check(name, spec, tx.snapshot)
    return tx.put(SparkCluster(name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", spec=spec))


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[SparkClusterSpec], SparkClusterSpec]
) -> SparkCluster:
    """Changes the spec of the Spark cluster by `change`."""
    cluster = present(tx, SparkCluster, name, etag)
    spec = change(cluster.spec)
    if spec == cluster.spec:
        return cluster
    check_same("spec.origin", cluster.spec.annotations.origin, spec.annotations.origin)
    check_same("spec.tenant", cluster.spec.tenant, spec.tenant)
    check(name, spec, tx.snapshot)
    return tx.put(dataclasses.replace(cluster, spec=spec, generation=cluster.generation + 1))


def delete(tx: Transaction, name: str, etag: str) -> SparkCluster:
    """Deletes a Spark cluster and returns it; the planner removes its drivers. Raises FailedPrecondition (IN_USE) while
    worker clusters name it."""
    cluster = present(tx, SparkCluster, name, etag)
    if users := [user.name for user in tx.snapshot.users_of_spark(name)]:
        more = f" and {len(users) - MAX_NAMED} more" if len(users) > MAX_NAMED else ""
        raise FailedPrecondition(
            f"spark cluster {name!r} is used by worker clusters {', '.join(users[:MAX_NAMED])}{more}: give these "
            "another one, or delete them first",
            reason="IN_USE",
            metadata={"name": name, "worker_clusters": ",".join(users[:MAX_NAMED])},
        )
    tx.drop(SPARK_CLUSTER, name)
    return cluster


def check(name: str, spec: SparkClusterSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument naming the field, the value and the legal values; FailedPrecondition for an origin of
    another Spark cluster."""
    if not _is_remote(spec.master):
        raise InvalidArgument.of("spec.master", spec.master, LEGAL_MASTER)
    check_nodes("spec.nodes", spec.nodes, snapshot)
    _check_number("spec.drivers", spec.drivers, 1, MAX_DRIVERS, f"{DRIVERS}, a driver and its standby")
    _check_number("spec.executor_cores", spec.executor_cores, 1, MAX_CORES, "the default of the nodes' settings")
    zero = "the default of the nodes' settings"
    _check_number("spec.executor_memory_mb", spec.executor_memory_mb, MIN_HEAP_MB, MAX_HEAP_MB, zero)
    if not spec.executor_python.isprintable():
        raise InvalidArgument.of("spec.executor_python", spec.executor_python, "the path of a Python, in one line")
    if spec.tenant:
        checked_name("spec.tenant", spec.tenant)
    _check_properties(spec)
    check_annotations(SPARK_CLUSTER, name, spec.annotations, snapshot)


def _is_remote(master: str) -> bool:
    """Returns whether this is a master that is served, and whose slots run in executors."""
    try:
        return Master.of(master).remote
    except InvalidArgument:
        return False


def _check_number(field: str, number: int, least: int, most: int, zero: str) -> None:
    if number != 0 and not least <= number <= most:
        raise InvalidArgument.of(field, number, f"0 ({zero}) or {least} to {most}")


def _check_properties(spec: SparkClusterSpec) -> None:
    for key, value in spec.properties.items():
        if not _PROPERTY.fullmatch(key):
            raise InvalidArgument.of("spec.properties", key, "properties of Spark, e.g. spark.executor.instances")
        if key in OWN_PROPERTIES:
            own = "spec.master has it" if key == "spark.master" else "keelman sets it"
            raise InvalidArgument.of(f"spec.properties.{key}", value, f"not set: {own}")


def check_named(spec: WorkerClusterSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument for a worker cluster that names a Spark cluster that does not exist, is another tenant's,
    or cannot copy for it."""
    name = spec.spark_cluster
    if not name:
        return
    if spec.engine is not WorkerEngine.KEELMAN:
        legal = f"empty with engine {spec.engine}: workers of Apache Kafka Connect copy by themselves"
        raise InvalidArgument.of("spec.spark_cluster", name, legal)
    if (cluster := snapshot.spark_clusters.get(name)) is None:
        names = ", ".join(sorted(snapshot.spark_clusters)[:MAX_NAMED]) or "none exists yet: create one first"
        raise InvalidArgument.of("spec.spark_cluster", name, f"empty, or the name of a spark cluster ({names})")
    if cluster.spec.tenant not in ("", spec.tenant):
        legal = f"a spark cluster of {f'tenant {spec.tenant}' if spec.tenant else 'no tenant'}"
        raise InvalidArgument.of("spec.spark_cluster", name, f"{legal}: this one serves tenant {cluster.spec.tenant}")
