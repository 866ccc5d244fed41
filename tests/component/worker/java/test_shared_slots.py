"""Tasks of one Java plugin that share a slot and its virtual machine: their placement, and the effects of faults."""

import re
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.java.kit import compiled, needs_java
from support.kafka.topics import create_topic, messages
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]
CLASS = "acme.BadSource"
HEAP, OPTIONS = "keelman.plugin.jvm.heap.bytes", "keelman.plugin.jvm.options"
SHOUT = {"transforms": "shout", "transforms.shout.type": "acme.ShoutTransform", "transforms.shout.end": ""}
Slots = Callable[[], Awaitable[dict[str, str]]]


async def test_tasks_that_share_a_slot_end_alone_and_come_back_when_one_ends_the_process(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    classes = await compiled(tmp_path / "classes")
    jar = tmp_path / "plugins" / "acme" / "acme.jar"
    jar.parent.mkdir(parents=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted(classes.rglob("*.class")):
            archive.write(file, str(file.relative_to(classes)))
    extra = {
        "plugin.path": str(tmp_path / "plugins"),
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "keelman.plugin.jvm.heap.bytes": str(64 << 20),
        "keelman.plugin.tasks.per.slot": "3",
    }
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "sharedjava", spark.address, extra)

    async def put(name: str, **more: str) -> None:
        config = {"connector.class": CLASS, "topic": f"shared-{name}", **more}
        response = await worker.ask("PUT", f"/connectors/{name}/config", config, timeout=300)
        assert response.status_code in (200, 201), response.text

    async def committed(name: str) -> int:
        answer = (await worker.ask("GET", f"/connectors/{name}/offsets")).json()
        return max((int(offset["offset"]["n"]) for offset in answer["offsets"]), default=0)

    async def goes_on(name: str) -> None:
        before = await committed(name)

        async def more() -> bool:
            now = await committed(name)
            return now > before or now < before - 10  # its records are numbered afresh when it restarts

        await eventually(more, what=f"{name} continues")

    async def tells(sample: str) -> bool:
        return re.search(f"kafka_connect_plugins_{sample}", (await worker.ask("GET", "/metrics")).text) is not None

    async with workers(worker), channel(spark.address) as opened:
        runs = CopyRunServiceStub(opened)

        async def slots() -> dict[str, str]:
            listed = await runs.ListCopyRuns(ListCopyRunsRequest(worker_cluster="sharedjava"))
            return {run.connector: run.slot for run in listed.copy_runs}

        for name in "abcd":
            create_topic(bootstrap, f"shared-{name}")
            await put(name, **(SHOUT if name == "a" else {}))
            await worker.reaches(name, "RUNNING", "RUNNING", seconds=300)
        before = await slots()
        assert before["a"] == before["b"] == before["c"] != before["d"]
        for name in "abcd":
            await goes_on(name)
        for sample in (
            r'polls_total{connector="c",task="0",its_kind="bad"} \d',
            r'given_total{connector="a",task="0",transformation="shout"} \d',
        ):
            await eventually(lambda sample=sample: tells(sample), what=sample)  # type: ignore[misc]

        assert (await worker.ask("DELETE", "/connectors/b")).status_code == 204
        await eventually(lambda: _without(slots, "b"), what="b has no copy run")
        await goes_on("a")
        await goes_on("c")
        assert {name: slot for name, slot in before.items() if name != "b"} == await slots()

        await put("c", does="exit")
        await eventually(lambda: _moved(slots, "a", before["a"]), what="a has another slot")
        assert (await worker.ask("DELETE", "/connectors/c")).status_code == 204
        await goes_on("a")
        await goes_on("d")
        assert (await slots())["d"] == before["d"], "another slot is not harmed"

        # A task with a virtual machine of its own kind shares none.
        create_topic(bootstrap, "shared-e")
        machine = {HEAP: str(32 << 20), OPTIONS: "-Dacme.mark=seven"}
        refused = await worker.ask(
            "PUT", "/connectors/e/config", {"connector.class": CLASS, **machine, OPTIONS: "-javaagent:x.jar"}
        )
        assert refused.status_code == 400, refused.text
        assert f"Invalid value -javaagent:x.jar for configuration {OPTIONS}" in refused.json()["message"]
        await put("e", **machine, does="tells")
        await goes_on("e")
        now = await slots()
        assert now["e"] not in {slot for name, slot in now.items() if name != "e"}
        assert (await worker.ask("DELETE", "/connectors/e")).status_code == 204
        await eventually(lambda: _without(slots, "e"), what="e has no copy run")
        mark, heap = (messages(bootstrap, "shared-e")[0].value() or b"").decode().split()
        assert (mark, int(heap) <= 32) == ("seven", True)
        assert await worker.end() == 0


async def _without(slots: Slots, name: str) -> bool:
    return name not in await slots()


async def _moved(slots: Slots, name: str, before: str) -> bool:
    return (await slots()).get(name, before) not in ("", before)
