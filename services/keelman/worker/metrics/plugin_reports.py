"""Reports this worker's findings in plugins to the control plane: when it has read them, and when they change."""

from __future__ import annotations

import time

from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.event.v1.report_pb2 import Report, WorkerPluginsReport
from keelman.kafka.feed import WORKER_REPORTS, ReportPublisher
from keelman.runtime.ticks import tick
from keelman.worker.asking.plugin_set import WorkerPluginSet

LOOK_SECONDS = 1.0
REPORT_SECONDS = 600.0
SUFFIX = "/plugins"


async def report_plugins(
    plugins: WorkerPluginSet, publisher: ReportPublisher, *, worker_cluster: str, worker: str
) -> None:
    """Runs until cancelled."""
    last: object = None
    reported = 0.0
    while True:
        about = WorkerPluginsReport(worker_cluster=worker_cluster, worker_id=worker, plugins=plugins.found())
        if about != last or time.monotonic() - reported >= REPORT_SECONDS:
            now = Timestamp()
            now.GetCurrentTime()
            name = worker + SUFFIX
            report = Report(time=now, reporter=worker, name=name, worker_plugins=about)
            publisher.publish(WORKER_REPORTS, name, report.SerializeToString())
            last, reported = about, time.monotonic()
        await tick(LOOK_SECONDS)
