"""Topics and operations by the command line, before a real gateway, a real state service and a real broker."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from confluent_kafka import Producer

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.exits import CONFLICT, FAILED, NOT_FOUND, USAGE
from keelman.kafka.data_topics import create_topic
from keelman.rpc.channels import channel
from support.cli.commands import Commands, commands, write_home
from support.eventually import eventually
from support.gateway.system import running_system

pytestmark = pytest.mark.component


@pytest_asyncio.fixture(scope="module")
async def prompt(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Commands]:
    async with running_system(tmp_path_factory.mktemp("system")) as system:
        folder = tmp_path_factory.mktemp("home")
        async with channel(system.gateway.address) as to:
            for name, servers in (("default", bootstrap), ("away", "127.0.0.1:1")):
                external = ExternalBrokers(bootstrap_servers=servers)
                await Gateway(to).create(kinds.BROKER_CLUSTERS, name, BrokerClusterSpec(external=external))
        write_home(system, folder)
        async with commands(folder) as prompt:
            yield prompt


async def test_a_topics_life(prompt: Commands, bootstrap: str, name: str) -> None:
    outcome = await prompt.ran(
        f"create topic {name} --partitions 2 --config retention.ms=60000 --label team=blue --wait"
    )
    assert outcome.out == f"topic/{name}\n"
    assert "SUCCEEDED" in outcome.err
    tree = json.loads((await prompt.ran(f"get topic {name} -o json")).out)
    assert tree["status"]["state"] == "TOPIC_STATE_PRESENT"
    assert tree["status"]["brokers"]["config"] == {"retention.ms": "60000"}

    producer = Producer({"bootstrap.servers": bootstrap})
    for text in ("one", "two"):
        producer.produce(name, text)
        assert not producer.flush(300)
    assert [line.strip() for line in (await prompt.ran(f"peek {name} -n 1")).out.splitlines()][1:] == ["two"]

    await create_topic({"bootstrap.servers": bootstrap}, f"{name}-beside", partitions=1)
    rows = {r.split()[0]: r.split() for r in (await prompt.ran("get topics --broker-cluster default")).out.splitlines()}
    assert rows[name][1:4] == ["PRESENT", "2", "1"]
    assert rows[f"{name}-beside"][1:4] == ["-", "1", "1"], "what else the brokers have is shown without a state"
    await create_topic({"bootstrap.servers": bootstrap}, f"keelman.events.{name}", partitions=1)
    for more, shown in (("", False), (" --internal", True)):
        rows = {
            line.split()[0]
            for line in (await prompt.ran(f"get topics --broker-cluster default{more}")).out.splitlines()
        }
        assert (f"keelman.events.{name}" in rows) is shown
    rows = (await prompt.ran("get topics -l team=blue")).out.splitlines()
    assert [row.split()[0] for row in rows[1:]] == [name]

    assert f"`keelman apply topic {name}`" in (await prompt.ran(f"update topic {name} --partitions 3")).out
    assert (await prompt.ran(f"apply topic {name} --wait")).out == f"topic/{name} PRESENT\n"
    printed = await prompt.ran(f"update topic {name} --unset retention.ms --apply --wait")
    assert printed.out == f"topic/{name} PRESENT\n"
    assert "team: green" in (await prompt.ran(f"label topic {name} team=green -o yaml")).out

    async def told() -> str:
        """The description, once the brokers have answered about all of it: a look may fail for a moment."""
        text = (await prompt.ran(f"describe topic {name}")).out
        return text if f"- '0: leader 1 ({bootstrap}), replicas 1, offsets 0 to " in text else ""

    shown = await eventually(told, what="the brokers' words are described")
    assert "state: PRESENT" in shown
    assert "# operations" in shown
    newest = (await prompt.ran(f"get operations --of topic/{name} -o name")).out.split()[0]
    shown = (await prompt.ran(f"describe {newest}")).out
    assert "state: SUCCEEDED" in shown
    assert "set-config DONE at " in shown
    assert "retention.ms as by default" in shown

    refused = await prompt.ran(f"update topic {name} --partitions 1", USAGE)
    assert "spec.partitions: 1 is not legal: 3 or more" in refused.err
    assert (await prompt.ran(f"delete topic {name} --yes")).out == f"topic/{name} deleted\n"
    assert (await prompt.ran(f"get topic {name}", NOT_FOUND)).err.startswith(f"keelman: no topic '{name}'")


async def test_a_topic_is_known_by_its_name_in_kafka_too(prompt: Commands, bootstrap: str, name: str) -> None:
    await prompt.ran(f"create topic {name} --topic In.{name} --broker-cluster default --wait --timeout 90s")
    assert (await prompt.ran(f"describe topic In.{name}")).out.startswith(f"# topic {name}\n")
    assert "has no records" in (await prompt.ran(f"peek In.{name}")).err
    printed = await prompt.ran(f"peek none.{name}", NOT_FOUND)
    assert f"no topic 'none.{name}' on broker cluster 'default'" in printed.err
    assert "'Bad/Name' is not legal" in (await prompt.ran("create topic Bad/Name", USAGE)).err
    await prompt.ran(f"delete topic {name} --yes")


async def test_what_goes_wrong_says_so(prompt: Commands, bootstrap: str, name: str) -> None:
    failed = await prompt.ran(f"create topic {name} --replication 7 --wait", FAILED)
    assert "failed: topic" in failed.err
    assert "replication factor" in failed.err.lower()
    assert "FAILED" in (await prompt.ran("get topics --state failed --broker-cluster default")).out
    assert (await prompt.ran(f"delete topic {name} --yes")).out == f"topic/{name} deleted\n"

    assert "did you mean 'retention.ms'" in (await prompt.ran(f"create topic {name} --set retntion.ms=1", USAGE)).err
    await prompt.ran(f"create topic {name} --no-apply --broker-cluster away")
    assert f"is used by topics {name}" in (await prompt.ran("delete broker-cluster away --yes", CONFLICT)).err
    out = (await prompt.ran(f"apply topic {name}")).out
    operation = out.rsplit("/", 1)[1].strip()
    assert "has not ended" in (await prompt.ran(f"apply topic {name}", CONFLICT)).err
    printed = await prompt.ran(f"cancel operation {operation} --reason enough --wait")
    assert printed.out == f"operation/{operation} CANCELED\n"
    assert "canceled: enough" in (await prompt.ran(f"describe op {operation}")).out
    assert "--paused: not for topics" in (await prompt.ran(f"apply topic {name} --paused", USAGE)).err
    assert (await prompt.ran(f"delete operation {operation}")).out == f"operation/{operation} deleted\n"
    await prompt.ran(f"delete topic {name} --yes --keep")
    assert "used by" not in (await prompt.ran("delete broker-cluster away --yes")).err


async def test_definitions_are_kept_while_their_cluster_is_down(prompt: Commands, name: str) -> None:
    await prompt.ran("create worker-cluster resting")
    text = f"create definition {name} --cluster resting --set connector.class=C --set tasks.max=1 --label team=blue"
    assert (await prompt.ran(text)).out == f"definition/{name}\n"
    row = (await prompt.ran("get definitions --cluster resting -l team=blue")).out.splitlines()[1].split()
    assert row[:5] == [name, "ABSENT", "ABSENT", "resting", name]
    assert "start it first" in (await prompt.ran(f"apply definition {name}", CONFLICT)).err
    changed = await prompt.ran(
        f"update cd {name} --set tasks.max=3 --unset connector.class --config connector.class=D", USAGE
    )
    assert "--unset: connector.class is also given with --set" in changed.err
    assert f"`keelman apply definition {name}`" in (await prompt.ran(f"update df {name} --set tasks.max=3")).out
    tree = json.loads((await prompt.ran(f"get definition {name} -o json")).out)
    assert tree["spec"]["config"] == {"connector.class": "C", "tasks.max": "3"}
    assert "# definition" in (await prompt.ran(f"describe definition {name}")).out
    assert "only together with --apply" in (await prompt.ran(f"update df {name} --set x=1 --wait", USAGE)).err
    assert (
        "--stopped: not together with --paused" in (await prompt.ran(f"apply df {name} --paused --stopped", USAGE)).err
    )
    assert (
        "--cluster: a definition needs" in (await prompt.ran(f"create df {name}-2 --set connector.class=C", USAGE)).err
    )
    assert (await prompt.ran(f"delete definition {name} --yes")).out == f"definition/{name} deleted\n"
