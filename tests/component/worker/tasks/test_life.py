"""The life of tasks and connectors on one worker: restarts by policy, stalled ones, and only what changed restarts."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from keelman.api.copy.v1.copy_run_pb2 import CopyProgress
from support.eventually import eventually
from support.kafka.topics import create_topic
from support.worker.processes import LinkSide, Run, WorkerProcess, workers

pytestmark = pytest.mark.component

SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "lines"}
QUICK = {"keelman.restart.backoff.ms": "50", "keelman.restart.backoff.max.ms": "100"}
SORRY = "java.lang.Sorry: why\n\tat somewhere\n"
SHOWN = ["id", "state", "version", "worker_id"]


async def task_of(worker: WorkerProcess, name: str, task: int = 0) -> dict[str, Any]:
    actual_task: dict[str, Any] = (await worker.ask("GET", f"/connectors/{name}/tasks/{task}/status")).json()
    return actual_task


async def another(side: LinkSide, name: str, before: Run | None = None) -> Run:
    """The next run of the connector that copies."""
    runs = await eventually(lambda: [r for r in side.of(name) if r is not before], what=f"a copy run of {name}")
    return runs[0]


async def failed(worker: WorkerProcess, side: LinkSide, run: Run, text: str) -> dict[str, Any]:
    """Fails a run and waits until the trace has this text."""
    side.fail(run, retriable=False, trace=SORRY)
    name = run.ticket.connector

    async def told() -> dict[str, Any] | None:
        status = await task_of(worker, name)
        return status if status["state"] == "FAILED" and text in status["trace"] else None

    return await eventually(told, what=f"{name} failed: {text}")


async def test_failures_are_tried_again_within_a_budget(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    side, address = link
    slow = {"keelman.restart.backoff.ms": "4000", "keelman.restart.max.attempts": "2"}
    worker = WorkerProcess(tmp_path, bootstrap, "life-restarts", address, {"session.timeout.ms": "120000", **slow})
    async with workers(worker):
        never = {**SOURCE, "keelman.restart.max.attempts": "0"}
        for name, config in (("src", SOURCE), ("never", never), ("wrong", SOURCE)):
            assert (await worker.ask("POST", "/connectors", {"name": name, "config": config})).status_code == 201
        run, once, wrong = [await another(side, name) for name in ("src", "never", "wrong")]
        for name in ("src", "never", "wrong"):
            await worker.reaches(name, "RUNNING", "RUNNING")

        status = await failed(worker, side, run, "Next automatic restart (1st of 2) at 2")
        assert status["trace"].startswith(SORRY), "first what Connect would show"
        restart = status["keelman"]["restart"]
        assert (restart["reason"], restart["attempt"], restart["max_attempts"]) == ("TASK_FAILED", 1, 2)
        assert restart["next"] in status["trace"]
        assert (await failed(worker, side, once, "Sorry"))["trace"] == SORRY, "as in Connect"
        side.fail(wrong, retriable=False, trace=SORRY, reason="CONFIG_INVALID")
        await worker.reaches("wrong", "RUNNING", "FAILED")

        run = await another(side, "src", run)
        await worker.reaches("src", "RUNNING", "RUNNING")
        used = {"reason": "TASK_FAILED", "attempt": 1, "max_attempts": 2}
        assert (await task_of(worker, "src"))["keelman"]["restart"] == used, "the next attempt is this one"
        # The used part of the budget outlives the worker.
        await worker.end(signal.SIGKILL)
        await worker.start()
        run = await another(side, "src", run)
        await worker.reaches("src", "RUNNING", "RUNNING")
        await failed(worker, side, run, "Next automatic restart (2nd of 2) at")
        # A paused task stays failed, and is not retried before it is resumed.
        assert (await worker.ask("PUT", "/connectors/src/pause")).status_code == 202
        await worker.reaches("src", "PAUSED", "FAILED")
        assert (await worker.ask("PUT", "/connectors/src/resume")).status_code == 202
        run = await another(side, "src", run)
        await worker.reaches("src", "RUNNING", "RUNNING")
        status = await failed(worker, side, run, "No more automatic restarts: 2 of 2 failed: TASK_FAILED")
        assert "next" not in status["keelman"]["restart"]

        # Only failed connectors and tasks restart, with the whole budget; a lost slot is waited for without limit.
        before = await another(side, "never")
        for name in ("src", "never"):
            path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
            answer = await worker.ask("POST", path)
            assert (answer.status_code, [sorted(task) for task in answer.json()["tasks"]]) == (202, [SHOWN]), (
                answer.text
            )
        run = await another(side, "src", run)
        await worker.reaches("src", "RUNNING", "RUNNING")
        assert side.of("never") == [before], "it had begun anew with its worker, and continues"
        await failed(worker, side, run, "Next automatic restart (1st of 2) at")
        side.slow = True
        side.fail(before, retriable=True, trace=SORRY, reason="SLOT_LOST")
        await worker.reaches("never", "RUNNING", "RESTARTING")
        assert (await task_of(worker, "never"))["trace"] == SORRY
        assert await worker.end() == 0


async def test_a_task_without_progress_is_stalled(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    side, address = link
    worker = WorkerProcess(tmp_path, bootstrap, "life-stalls", address, {"keelman.stall.after.ms": "1"})
    config = {**SOURCE, "keelman.commit.interval.ms": "300"}
    async with workers(worker):
        await worker.ask("POST", "/connectors", {"name": "src", "config": config})
        run = await another(side, "src")

        async def stalled() -> dict[str, Any] | None:
            status = await task_of(worker, "src")
            assert status["state"] == "RUNNING", "one of Connect's states"
            answer: dict[str, Any] | None = status.get("keelman", {}).get("stalled")
            return answer

        await worker.reaches("src", "RUNNING", "RUNNING")
        assert await stalled() is None
        side.copies(run, progress=CopyProgress(records=5, lag=7))
        assert (await eventually(stalled, what="it is stalled"))["left"] == 7
        side.copies(run, progress=CopyProgress(records=12, lag=0))

        async def moves() -> bool:
            return await stalled() is None

        await eventually(moves, what="it moves again")
        assert "task_stalled" in worker.output
        assert await worker.end() == 0


async def test_only_what_changed_restarts(bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    """Two tasks of a mirror and another connector: each change restarts only the tasks it concerns."""
    side, address = link
    worker = WorkerProcess(tmp_path, bootstrap, "life-changes", address)
    for topic, partitions in (("life-a", 4), ("life-z", 1)):
        create_topic(bootstrap, topic, partitions)
    mirror = {
        "connector.class": "MirrorSource",
        "tasks.max": "2",
        "topics": "life-a",
        "source.cluster.alias": "there",
        "target.cluster.alias": "here",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "replication.factor": "1",
        "emit.offset-syncs.enabled": "false",
        "sync.topic.acls.enabled": "false",
    }

    def running() -> list[str]:
        """The uids of the copying runs: the mirror's two tasks, and the other connector's."""
        results = [side.of("mirror", 0), side.of("mirror", 1), side.of("other")]
        return [runs[0].ticket.run_uid for runs in results if len(runs) == 1]

    async def changed(config: dict[str, str], before: list[str], *same: bool) -> list[str]:
        """Writes the mirror's configuration; waits until it is in force and exactly the runs in `same` continue."""
        assert (await worker.ask("PUT", "/connectors/mirror/config", config)).status_code == 200

        async def there() -> list[str] | None:
            tasks = (await worker.ask("GET", "/connectors/mirror/tasks")).json()
            now = running()
            settled = len(now) == 3 and json.loads(json.dumps(tasks))[0]["config"].get("mark") == config.get("mark")
            return now if settled and [a == b for a, b in zip(now, before, strict=True)] == list(same) else None

        return await eventually(there, what=f"the same: {same}")

    async with workers(worker):
        await worker.ask("POST", "/connectors", {"name": "other", "config": SOURCE})
        await worker.ask("POST", "/connectors", {"name": "mirror", "config": mirror})
        await worker.reaches("mirror", "RUNNING", "RUNNING", "RUNNING", seconds=300)
        now = await eventually(lambda: running() if len(running()) == 3 else None)
        mirror |= {"topics": "life-a,life-z"}
        now = await changed(mirror, now, False, True, True)
        assert side.of("mirror", 0)[0].ticket.task_config["task.assigned.partitions"].endswith("life-z-0")
        mirror |= {"keelman.restart.max.attempts": "3", "refresh.topics.interval.seconds": "500"}
        now = await changed(mirror, now, True, True, True)
        mirror |= {"mark": "felt by the tasks"}
        now = await changed(mirror, now, False, False, True)
        first = side.of("mirror", 1)[0]
        # The task that kept running was not fenced: it commits, and its next copy run gets its ticket.
        side.fail(first, retriable=True)
        await eventually(lambda: len(running()) == 3 and running()[1] != now[1], what="it begins anew")
        assert await worker.end() == 0


async def test_what_a_dead_worker_had_is_not_running(
    bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path
) -> None:
    side, address = link
    delay = {"scheduled.rebalance.max.delay.ms": "10000"}
    first, second = (  # with a member file, the farewell would be their agent's task
        WorkerProcess(
            tmp_path / n, bootstrap, "life-dead", address, delay, flags=("--member-file", str(tmp_path / f"{n}.json"))
        )
        for n in ("one", "two")
    )
    async with workers(first, second):
        for name in ("a", "b"):
            await first.ask("POST", "/connectors", {"name": name, "config": SOURCE})
        await eventually(lambda: {r.worker for n in "ab" for r in side.of(n)} == {first.id, second.id})
        lost = next(n for n in "ab" if side.of(n)[0].worker == second.id)
        await first.reaches(lost, "RUNNING", "RUNNING")
        await second.end(signal.SIGKILL)

        async def unassigned() -> bool:
            status = await task_of(first, lost)
            gone = "its worker is gone" in status.get("trace", "")
            assert gone or status["state"] != "UNASSIGNED", "it came back before it was gone"
            assert not gone or status["worker_id"] == first.id, (
                "the leader's word, over which the dead one's own may come"
            )
            return gone

        await eventually(unassigned, every=0.02, what="its status tells that it runs on no worker")
        await first.reaches(lost, "RUNNING", "RUNNING", seconds=300)
        assert await first.end() == 0
