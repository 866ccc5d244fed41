"""A node's Spark service that hangs: the worker cluster's status tells that it copies nothing, and the reason."""

from __future__ import annotations

import contextlib
import signal

import psutil
import pytest

from support.cli.system import Keelman
from support.eventually import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


async def test_a_cluster_whose_spark_service_hangs_is_degraded_until_it_is_back(own: Keelman) -> None:
    await own.ok("up", "--detach", "--free-ports")
    await own.ok("create", "wc", "away", "--count", "1", "--start", "--wait")
    (spark,) = [process for process in own.processes() if is_spark(process)]
    spark.send_signal(signal.SIGSTOP)
    try:

        async def degraded() -> str:
            status = (await own.item("wc", "away"))["status"]
            return status["message"] if status["state"] == "CLUSTER_STATE_DEGRADED" else ""

        reason = await eventually(degraded, what="the cluster is degraded")
        assert "spark/" in reason or "no Spark service answers" in reason
        table = await own.run("get", "wc", "-o", "wide")
        assert "DEGRADED" in table.out
        assert reason.splitlines()[0][:40] in table.out

        async def noted() -> bool:
            (worker,) = await own.items("workers")
            return "no Spark service answers this worker" in worker["process"].get("message", "")

        await eventually(noted, what="its worker reports it too")
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):  # its agent has killed it meanwhile
            spark.send_signal(signal.SIGCONT)

    async def runs() -> bool:
        status = (await own.item("wc", "away"))["status"]
        return status["state"] == "CLUSTER_STATE_RUNNING" and not status.get("message")

    await eventually(runs, what="it runs again by itself")
    await own.ok("down")


def is_spark(process: psutil.Process) -> bool:
    """Whether it is a node's Spark service."""
    try:
        return " ".join(process.cmdline()).startswith("keelman spark")
    except psutil.Error:
        return False
