"""A source and a sink with workers of their own, configured through config providers on the workers' host.

And each metric of managed services that they give.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from keelman.api.connect.v1.dedicated_connector_pb2 import WorkerConfigurationRef
from keelman.api.connect.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from keelman.rpc.channels import channel
from support.cli.system import STRING, Keelman
from support.copying.loads import Numbers
from support.eventually import eventually
from support.state.dedicated import FILE, Dedicated, file_source

pytestmark = pytest.mark.e2e
PROVIDERS = "org.apache.kafka.common.config.provider"
CONFIGURATION = f"""
key.converter={STRING}
value.converter={STRING}
config.providers=env,file,directory
config.providers.env.class={PROVIDERS}.EnvVarConfigProvider
config.providers.env.param.allowlist.pattern=ORDERS_.*
config.providers.file.class={PROVIDERS}.FileConfigProvider
config.providers.directory.class={PROVIDERS}.DirectoryConfigProvider
"""
OF_BOTH = (
    "CpuUtilization", "MemoryUtilization", "WorkerCount", "RebalanceCompletedTotal", "RebalanceTimeAvg",
    "RebalanceTimeMax", "RebalanceTimeSinceLast", "TaskStartupAttemptsTotal", "TaskStartupSuccessPercentage",
    "RunningTaskCount",
)  # fmt: skip
"""More than nothing while a connector runs and copies."""
OF_ONE = {
    "a-source": ("SourceRecordPollRate", "SourceRecordWriteRate", "BytesOutPerSec"),
    "a-sink": ("SinkRecordReadRate", "SinkRecordSendRate", "BytesInPerSec"),
}
FAILS = "a-failure"
"""A source whose task runs until it writes: its topic has a name that no topic can have."""


@pytest.fixture
async def system(own: Keelman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keelman:
    """A system whose host has the values: a variable, a file and a folder."""
    monkeypatch.setenv("ORDERS_TOPIC", "orders")
    monkeypatch.setenv("KEELMAN_AGENT_PASS_ENVIRONMENT", "ORDERS_*")
    (tmp_path / "values.properties").write_text(f"input={tmp_path / 'in.txt'}\noutput={tmp_path / 'out.txt'}\n")
    (folder := tmp_path / "values").mkdir()
    (folder / "tasks").write_text("1")
    (tmp_path / "strings.properties").write_text(CONFIGURATION)
    await own.ok("up", "--detach", "--free-ports")
    await own.ok("create", "worker-configuration", "strings", "--config-file", str(tmp_path / "strings.properties"))
    return own


async def figures(keelman: Keelman) -> dict[str, dict[str, float]]:
    """The gateway's metrics of each connector, by its name and the metric's."""
    async with httpx.AsyncClient(trust_env=False) as client:
        text = (await client.get(f"{keelman.system['http']}/metrics", timeout=300)).text
    actual_figures: dict[str, dict[str, float]] = {}
    for sample in (s for family in text_string_to_metric_families(text) for s in family.samples):
        if "ConnectorName" in sample.labels:
            actual_figures.setdefault(sample.labels["ConnectorName"], {})[sample.name] = sample.value
    return actual_figures


def missing(answer: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The metrics with implausible values while both connectors copy."""
    told = []
    for connector, own in OF_ONE.items():
        has = answer.get(connector, {})
        told += [f"{connector} {name}" for name in (*OF_BOTH, *own) if not has.get(name, 0) > 0]
        told += [] if has.get("ErroredTaskCount") == 0 else [f"{connector} ErroredTaskCount"]
        others = [name for other, names in OF_ONE.items() if other != connector for name in names]
        told += [f"{connector} {name} of the other kind" for name in others if has.get(name, 0) > 0]
    return told


async def test_providers_of_a_worker_configuration_and_all_metrics(system: Keelman, tmp_path: Path) -> None:
    assert len({*OF_BOTH, "ErroredTaskCount", *sum(OF_ONE.values(), ())}) == 17
    values = f"${{file:{tmp_path / 'values.properties'}"
    source = file_source(values + ":input}", "${env:ORDERS_TOPIC}")
    source["tasks.max"] = f"${{directory:{tmp_path / 'values'}:tasks}}"
    sink = {
        "connector.class": f"{FILE}SinkConnector", "file": values + ":output}", "topics": "${env:ORDERS_TOPIC}",
        "tasks.max": source["tasks.max"],
    }  # fmt: skip
    path, output = tmp_path / "in.txt", tmp_path / "out.txt"
    servers = (await system.item("bc", "default"))["status"]["bootstrap_servers"]
    async with channel(system.system["gateway"]) as link:
        dedicated, ref = Dedicated(link), WorkerConfigurationRef(name="strings")
        (broken := tmp_path / "broken.txt").touch()
        configs = {"a-source": source, "a-sink": sink, FAILS: file_source(broken, "no topic")}
        answers = [await dedicated.create(n, c, servers, worker_configuration=ref) for n, c in configs.items()]
        for answer in answers:
            operation = await dedicated.ended(answer, seconds=300)
            assert operation.state == OPERATION_STATE_SUCCEEDED, (operation, system.logs())
        async with Numbers(path, 20).load():

            async def all_are_there() -> bool:
                told = missing(actual_figures := await figures(system))
                assert not told, (told, system.logs())
                assert actual_figures[FAILS]["ErroredTaskCount"] == 0
                return True

            await eventually(all_are_there, every=1.0, what="each metric has a value")
        await eventually(lambda: output.exists() and output.read_text() == path.read_text())
        broken.write_text("one\n")

        async def one_has_failed() -> bool:
            figure = (await figures(system))[FAILS]
            return (figure["ErroredTaskCount"], figure["RunningTaskCount"]) == (1, 0)

        await eventually(one_has_failed, every=0.5, what="a task that has failed is counted")
        for name, config in configs.items():
            assert dict((await dedicated.get(name)).spec.config) == config, "references stay references"
