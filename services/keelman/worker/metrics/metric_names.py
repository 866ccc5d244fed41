"""Every metric of a worker, as docs/metrics.md describes them for people.

Connect's own keep their JMX names as jmx_exporter writes them without rules: domain, type and attribute with
underscores. A JMX text is a label of a metric that is 1. Ours begin with `keelman_`.
"""

from __future__ import annotations

from keelman.runtime.exposition import COUNTER, GAUGE, UNTYPED, Family

_WORKER = "kafka_connect_connect_worker_metrics_"
_REBALANCE = "kafka_connect_connect_worker_rebalance_metrics_"
_COORDINATOR = "kafka_connect_connect_coordinator_metrics_"
_SOURCE, _SINK = "kafka_connect_source_task_metrics_", "kafka_connect_sink_task_metrics_"
_ERRORS = "kafka_connect_task_error_metrics_"

INFO = Family("keelman_worker_info", GAUGE, "1, with what this worker is as labels.")
START = Family("keelman_worker_start_time_seconds", GAUGE, "When the process began, in seconds since 1970.")
CPU = Family("keelman_worker_cpu_seconds_total", COUNTER, "Processor time of the worker's own process.")
MEMORY = Family("keelman_worker_memory_bytes", GAUGE, "Resident memory of the worker's own process.")
SLOTS = Family("keelman_worker_slots", GAUGE, "Slots that hold this worker's copy runs.")
SLOT_CPU = Family("keelman_worker_slot_cpu_seconds_total", COUNTER, "Processor time of the worker's slots.")
SLOT_MEMORY = Family("keelman_worker_slot_memory_bytes", GAUGE, "Memory of the worker's slots.")
JOINED = Family("keelman_worker_joined", GAUGE, "1 while the worker has its place in the group.")
LEADER = Family("keelman_worker_leader", GAUGE, "1 while the worker leads its group.")
LOSSES = Family("keelman_worker_place_losses_total", COUNTER, "How often the group has lost this worker.")
LINK = Family("keelman_worker_spark_link", GAUGE, "1 while there is a link to the Spark service.")
TAKES_TASKS = Family("keelman_worker_takes_tasks", GAUGE, "1 while the worker takes tasks: it has its Spark service.")
SPARK_CORES = Family(
    "keelman_worker_spark_cores", GAUGE, "Cores that the Spark service has on its cluster, for all its workers."
)
SPARK_CORES_WANTED = Family(
    "keelman_worker_spark_cores_wanted", GAUGE, "Cores that the slots of the Spark service need on its cluster."
)
CONFIG_OFFSET = Family("keelman_worker_config_offset", GAUGE, "How far the config topic has been read.")
CONNECTORS = Family("keelman_worker_connectors", GAUGE, "Connectors of this worker, by state.")
TASKS = Family("keelman_worker_tasks", GAUGE, "Tasks of this worker, by state.")
PARKED = Family("keelman_worker_parked_tasks", GAUGE, "Tasks that have nothing to copy and no copy run.")

CONNECTOR_STATE = Family("keelman_connector_state", GAUGE, "1 for the state that the connector is in.")
TASK_STATE = Family("keelman_task_state", GAUGE, "1 for the state that the task is in.")
STALLED = Family("keelman_task_stalled", GAUGE, "1 while the task has something to copy and copies nothing.")
RUNS = Family("keelman_task_copy_runs_total", COUNTER, "Copy runs that the task has begun.")
FAILURES = Family(
    "keelman_task_failures_total",
    COUNTER,
    "Copy runs of the task that ended by an error, and its failures before there was one.",
)
ROLLBACKS = Family(
    "keelman_task_rollbacks_total", COUNTER, "How often the task's source has taken back what it had given."
)
TAKEN_BACK = Family(
    "keelman_task_taken_back_total",
    COUNTER,
    "Changes, at most, that the task's source has taken back: they may have been copied twice.",
)
SET_ASIDE = Family(
    "keelman_task_set_aside_partitions",
    GAUGE,
    "Partitions of a topic that the task does not copy now: their target does not take them, or it may not read them.",
)
BYTES = Family("keelman_task_bytes_total", COUNTER, "Bytes of the keys and values that the task has committed.")
BYTES_RATE = Family("keelman_task_bytes_per_second", GAUGE, "Bytes that the task commits in a second now.")
LAG_RECORDS = Family("keelman_task_lag_records", GAUGE, "Records that the task has left to copy.")
LAG_BYTES = Family("keelman_task_lag_bytes", GAUGE, "Bytes that the task has left to copy.")
LAG_SECONDS = Family("keelman_task_lag_seconds", GAUGE, "For how long the task has had something left to copy.")
SECONDS_LEFT = Family("keelman_task_catch_up_seconds", GAUGE, "Estimate until nothing is left to copy.")
COMMITTED = Family("keelman_task_last_commit_time_seconds", GAUGE, "When the task committed last, seconds since 1970.")

CONNECTOR_COUNT = Family(_WORKER + "connector_count", GAUGE, "Connectors of this worker.")
TASK_COUNT = Family(_WORKER + "task_count", GAUGE, "Tasks of this worker.")
STARTS = {
    (is_task, what): Family(
        f"{_WORKER}{'task' if is_task else 'connector'}_startup_{what}_total",
        COUNTER,
        f"Starts of {'tasks' if is_task else 'connectors'} on this worker: {what}.",
    )
    for is_task in (False, True)
    for what in ("attempts", "success", "failure")
}
TASKS_OF = {
    state: Family(
        f"{_WORKER}connector_{state}_task_count", GAUGE, f"Tasks of the connector on this worker: {state}; none when 0."
    )
    for state in ("total", "running", "paused", "failed", "unassigned", "restarting", "destroyed")
}
REBALANCES = Family(_REBALANCE + "completed_rebalances_total", COUNTER, "Places that the group gave this worker.")
EPOCH = Family(_REBALANCE + "epoch", GAUGE, "The group's generation.")
REBALANCING = Family(_REBALANCE + "rebalancing", GAUGE, "1 while the worker is without its place.")
SINCE_REBALANCE = Family(_REBALANCE + "time_since_last_rebalance_ms", GAUGE, "Time since the last one, in ms.")
LEADER_NAME = Family(_REBALANCE + "leader_name", GAUGE, "1, with the leader's URL as label.")
ASSIGNED_CONNECTORS = Family(_COORDINATOR + "assigned_connectors", GAUGE, "Connectors that the group gave this worker.")
ASSIGNED_TASKS = Family(_COORDINATOR + "assigned_tasks", GAUGE, "Tasks that the group gave this worker.")
CONNECTOR = Family("kafka_connect_connector_metrics", GAUGE, "1, with the attributes as labels.")
TASK = Family("kafka_connect_connector_task_metrics", GAUGE, "1, with the attributes as labels.")
POLLED = Family(_SOURCE + "source_record_poll_total", COUNTER, "Records read, those passed over among them.")
WRITTEN = Family(_SOURCE + "source_record_write_total", COUNTER, "Records written and committed.")
POLL_RATE = Family(_SOURCE + "source_record_poll_rate", GAUGE, "Records read in a second.")
WRITE_RATE = Family(_SOURCE + "source_record_write_rate", GAUGE, "Records written in a second.")
READ = Family(_SINK + "sink_record_read_total", COUNTER, "Records read, those passed over among them.")
SENT = Family(_SINK + "sink_record_send_total", COUNTER, "Records put and committed.")
READ_RATE = Family(_SINK + "sink_record_read_rate", GAUGE, "Records read in a second.")
SEND_RATE = Family(_SINK + "sink_record_send_rate", GAUGE, "Records put in a second.")
LAG_MAX = Family(_SINK + "sink_record_lag_max", GAUGE, "Records left, of all partitions together.")
SKIPPED = Family(_ERRORS + "total_records_skipped", UNTYPED, "Records that were passed over.")
BAD_RECORDS = {
    "failures": Family(_ERRORS + "total_record_failures", UNTYPED, "Times that a step could not take a record."),
    "errors": Family(_ERRORS + "total_record_errors", UNTYPED, "Records that could not be copied."),
    "retries": Family(_ERRORS + "total_retries", UNTYPED, "Times that a step was tried again."),
    "logged": Family(_ERRORS + "total_errors_logged", UNTYPED, "Errors that were logged."),
    "dead_letters": Family(_ERRORS + "deadletterqueue_produce_requests", UNTYPED, "Dead letters to be written."),
    "dead_letter_failures": Family(
        _ERRORS + "deadletterqueue_produce_failures", UNTYPED, "Times that dead letters could not be written."
    ),
}
"""By their names in CopyProgress.bad_records; none of a task that never met a bad record."""
LAST_ERROR = Family(_ERRORS + "last_error_timestamp", UNTYPED, "When the last one was met, in ms since 1970.")
