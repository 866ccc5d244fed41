"""The options of `create` and `update` for the specs of nodes, clusters and others."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.cli import autoscaling
from keelman.cli.kinds import (
    APPLIED,
    BROKER_CLUSTERS,
    CONNECTORS,
    DEDICATED_CONNECTORS,
    NODES,
    SAID,
    SPARK_CLUSTERS,
    TOPICS,
    WORKER_CLUSTERS,
)
from keelman.cli.options import option

_CLUSTERS = (BROKER_CLUSTERS, WORKER_CLUSTERS)
_WORKERS = (WORKER_CLUSTERS,)
_WITH_WORKERS = (WORKER_CLUSTERS, DEDICATED_CONNECTORS)
_SPARK = (SPARK_CLUSTERS,)
_LABELLED = (NODES, DEDICATED_CONNECTORS, *SAID, *_CLUSTERS, *APPLIED, *_SPARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Options for a spec; None or empty if not given."""

    description: str | None = option("--description", "TEXT", "A description, for people.", _LABELLED)
    labels: list[str] | None = option("--label", "K=V", "A label; may be repeated.", _LABELLED)
    values: list[str] | None = option(
        "--set --property --config",
        "K=V",
        "Property of a cluster's brokers, clients, workers or Spark; key of a connector, definition or topic.",
        (*_CLUSTERS, CONNECTORS, DEDICATED_CONNECTORS, *APPLIED, *_SPARK),
    )
    worker_values: list[str] | None = option(
        "--worker-property", "K=V", "Of a dedicated connector's workers, or none.", (DEDICATED_CONNECTORS,)
    )
    worker_configuration: str = option(
        "--worker-configuration",
        "NAME[:REVISION]",
        "Of a dedicated connector, or none.",
        (DEDICATED_CONNECTORS,),
        default="",
    )
    partitions: int | None = option("--partitions", "N", "Of a topic; they only grow.", (TOPICS,), min=1)
    replication: int | None = option("--replication", "N", "Replicas of each partition of a topic.", (TOPICS,), min=1)
    nodes: str = option(
        "--nodes",
        "A,B",
        "Of a cluster: one broker or worker on each of these. Of a Spark cluster: they may have its drivers, or none.",
        (*_CLUSTERS, *_SPARK),
        default="",
    )
    count: int | None = option(
        "--count", "N", "Number of workers, on any nodes; a new cluster has 1.", _WITH_WORKERS, min=1
    )
    autoscale: str = option("--autoscale", "MIN..MAX[,K=V]", autoscaling.HELP, _WITH_WORKERS, default="")
    node_selector: list[str] | None = option(
        "--node-selector", "K=V", "Label of the nodes that a --count may be on, or none.", _WITH_WORKERS
    )
    port: int | None = option("--port", "PORT", "Of a cluster, the same on each node; 0: a free one.", _CLUSTERS)
    metrics_port: int | None = option("--metrics-port", "PORT", "Of each worker or broker; 0: none.", _CLUSTERS)
    admin_port: int | None = option("--admin-port", "PORT", "Of each worker's admin listener; 0: none.", _WORKERS)
    reserved_ports: list[str] | None = option(
        "--reserved-port", "PORT", "Kept free for connectors, or none; may be repeated.", _WORKERS
    )
    routes: list[str] | None = option(
        "--route", "HOST=ADDRESS", "Of a host, for its processes alone, or none; may be repeated.", _CLUSTERS
    )
    heap: str = option(
        "--heap", "SIZE", "Most heap of each broker, at least 128MiB; 0: 512MiB.", (BROKER_CLUSTERS,), default=""
    )
    log_group: str = option(
        "--log-group", "FOLDER", "Files its workers' logs are delivered to, or none.", _WITH_WORKERS, default=""
    )
    log_bucket: str = option(
        "--log-bucket", "BUCKET[/PREFIX]", "Objects that they are delivered to, or none.", _WITH_WORKERS, default=""
    )
    log_topic: str = option(
        "--log-topic", "TOPIC", "Topic that they are delivered to, or none.", _WITH_WORKERS, default=""
    )
    https: bool | None = option("--https/--no-https", None, "Workers' REST API is https.", _WORKERS)
    cpus: float | None = option(
        "--cpus", "N", "Most processors of a worker, or of a node's workloads; 0: no limit.", (NODES, *_WITH_WORKERS)
    )
    memory: str = option(
        "--memory",
        "SIZE",
        "Most memory of a worker, or of a node's workloads, e.g. 512MiB; 0: no limit.",
        (NODES, *_WITH_WORKERS),
        default="",
    )
    shared_offset_topic: bool | None = option(
        "--shared-offset-topic/--no-shared-offset-topic", None, "Worker clusters may have one offset topic.", _WORKERS
    )
    tenant: str | None = option(
        "--tenant",
        "NAME",
        "Shares a user and a Spark service on each node with clusters of this tenant. Of a Spark cluster: the only "
        "tenant that may name it.",
        (*_WORKERS, *_SPARK),
    )
    spark_cluster: str | None = option(
        "--spark-cluster", "NAME", "The Spark cluster that runs its tasks; '' for each node's own Spark.", _WORKERS
    )
    master: str | None = option("--master", "URL", "Of a Spark cluster: spark://host:port or sc://host:port.", _SPARK)
    drivers: int | None = option(
        "--drivers", "N", "Of a Spark cluster: a driver and its standbys, 1 to 4 [2].", _SPARK, min=0
    )
    executor_cores: int | None = option(
        "--executor-cores", "N", "Of each executor; 0: as the nodes' settings say.", _SPARK, min=0
    )
    executor_memory: str = option(
        "--executor-memory", "SIZE", "Heap of each executor; 0: as the nodes' settings say.", _SPARK, default=""
    )
    executor_python: str | None = option(
        "--executor-python", "PATH", "Python of the executors; '' for that of the nodes' settings.", _SPARK
    )
    allowed_topics: list[str] | None = option(
        "--allow-topic", "TOPIC", "On brokers with access rules, * for any end, or none; may be repeated.", _WORKERS
    )
    allowed_groups: list[str] | None = option(
        "--allow-group", "GROUP", "Consumer groups there, as topics [connect-*]; may be repeated.", _WORKERS
    )
    plugins: list[str] | None = option(
        "--plugin", "NAME[:VERSION]", "Plugin that workers load; may be repeated.", _WITH_WORKERS
    )
    libraries: list[str] | None = option(
        "--library", "NAME[:VERSION]", "Plugin whose jars all Java plugins find; may be repeated.", _WITH_WORKERS
    )
    engine: str = option("--engine", "E", "Of a worker cluster: keelman or kafka-connect.", _WITH_WORKERS, default="")
    credential_profile: str | None = option(
        "--credential-profile",
        "SECRET",
        "Secret with security.*, sasl.* and ssl.* properties of external brokers' clients; '' for none.",
        (BROKER_CLUSTERS,),
    )
    bootstrap_servers: str = option(
        "--bootstrap-servers",
        "H:P,...",
        "Brokers that exist already.",
        (BROKER_CLUSTERS, DEDICATED_CONNECTORS),
        default="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenChange(Given):
    """Options for a change of a spec."""

    unlabel: list[str] | None = option("--unlabel", "K", "A label to remove; may be repeated.", _LABELLED)
    unset: list[str] | None = option(
        "--unset", "K", "A property to remove; may be repeated.", (*_CLUSTERS, DEDICATED_CONNECTORS, *APPLIED, *_SPARK)
    )
    add_nodes: list[str] | None = option("--add-node", "NODE", "A node to add; may be repeated.", (*_CLUSTERS, *_SPARK))
    remove_nodes: list[str] | None = option(
        "--remove-node", "NODE", "A node to remove; may be repeated.", (*_CLUSTERS, *_SPARK)
    )
    remove_plugins: list[str] | None = option(
        "--remove-plugin", "NAME", "A plugin to remove; may be repeated.", _WORKERS
    )
    remove_libraries: list[str] | None = option(
        "--remove-library", "NAME", "A library to remove; may be repeated.", _WORKERS
    )
