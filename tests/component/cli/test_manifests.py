"""Resources as files declare them: planned, applied, exported and pruned.

The tests use a real gateway and a real state service; two nodes report every assigned workload as running.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keelman.api.connect.v1.document_pb2 import Document
from keelman.api.connect.v1.document_service_pb2 import PutDocumentRequest
from keelman.api.connect.v1.document_service_pb2_grpc import DocumentServiceStub
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.exits import FAILED, OK, USAGE
from keelman.cli.manifests.table import FORMS
from keelman.rpc.channels import channel
from support.cli.commands import Commands, commands, write_home
from support.cli.system import Ran
from support.connectors.numbers_wheel import numbers_wheel
from support.eventually import eventually
from support.gateway.system import System, running_system

pytestmark = pytest.mark.component
CANARY = "canary-4711"
EVERYTHING = f"""
kind: secret
name: prod/db
labels: {{app: shop}}
spec:
  values: {{user: me, password: {CANARY}}}
---
kind: worker-configuration
name: text
labels: {{app: shop}}
spec:
  content: |
    key.converter=org.apache.kafka.connect.storage.StringConverter
    value.converter=org.apache.kafka.connect.storage.StringConverter
---
kind: node
name: later
labels: {{disk: ssd}}
spec:
  capacity: {{cpus: 2, memory_bytes: 8GiB}}
---
kind: broker-cluster
name: ext
labels: {{app: shop}}
spec:
  external:
    bootstrap_servers: 127.0.0.1:1
    client_properties: {{sasl.password: {CANARY}, client.id: me}}
---
kind: worker-cluster
name: shop
labels: {{app: shop}}
goal: running
spec:
  broker_cluster: ext
  count: 1
  properties:
    offset.flush.interval.ms: 5000
    offset.storage.partitions: 10
---
kind: topic
name: orders
labels: {{app: shop}}
goal: absent
spec: {{broker_cluster: ext, partitions: 3, config: {{retention.ms: 86400000}}}}
---
kind: definition
name: lines
labels: {{app: shop}}
goal: absent
spec:
  worker_cluster: shop
  config: {{connector.class: FileStreamSource, file: in.txt, topic: orders, db.password: {CANARY}, tasks.max: 1}}
"""
SOLO = {
    "kind": "dedicated-connector",
    "name": "solo",
    "spec": {
        "broker_cluster": "ext",
        "capacity": {"count": 1},
        "config": {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "x", "a.password": CANARY},
    },
}


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with running_system(tmp_path_factory.mktemp("system")) as system:
        yield system


@pytest_asyncio.fixture(scope="module")
async def prompt(system: System, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Commands]:
    folder = tmp_path_factory.mktemp("home")
    async with channel(system.gateway.address) as to:
        gateway = Gateway(to)

        async def both_nodes() -> bool:
            return len(await gateway.list(kinds.NODES)) == 2

        await eventually(both_nodes)
    write_home(system, folder)
    async with commands(folder) as prompt:
        yield prompt


async def ran(prompt: Commands, line: str, code: int = OK) -> Ran:
    outcome = await prompt.run(line.split())
    assert outcome.code == code, outcome
    assert CANARY not in outcome.out + outcome.err
    return outcome


async def test_what_is_exported_is_applied_with_no_difference(prompt: Commands, system: System, tmp_path: Path) -> None:
    (everything := tmp_path / "all.yaml").write_text(EVERYTHING)
    planned = await ran(prompt, f"apply -f {everything} --plan", 2)
    assert planned.out.splitlines()[-1] == "7 to create"
    assert (await ran(prompt, "get secrets")).out == ""
    applied = await ran(prompt, f"apply -f {everything}")
    assert "worker-cluster/shop created: being applied as RUNNING" in applied.out
    unreachable = await ran(prompt, f"apply -f {everything} --wait --timeout 5")
    assert unreachable.out == "7 unchanged\n"
    await ran(prompt, "start wc shop --wait --timeout 60")
    wheel = numbers_wheel(tmp_path)
    await ran(prompt, f"create plugin {wheel} --label app=shop")
    async with channel(system.gateway.address) as to:
        document = Document(kind="test.note", scope="a", key="b", secrets={"token": CANARY})
        document.content.update({"text": "x", "number": 1})
        await DocumentServiceStub(to).PutDocument(PutDocumentRequest(document=document))
    (config := tmp_path / "in.properties").write_text(f"name=in\nconnector.class=FileStreamSource\npassword={CANARY}\n")
    await ran(prompt, f"apply -f {config} --cluster shop")
    await ran(prompt, f"create spark-cluster big --master spark://m:7077 --set spark.authenticate.secret={CANARY}")
    (solo := tmp_path / "solo.json").write_text(json.dumps(SOLO))
    assert (await ran(prompt, f"apply -f {solo}")).out == "dedicated-connector/solo created\n"

    remaining = set()
    for form in FORMS:
        exported = (await ran(prompt, f"export {form.kind.singular}")).out
        (file := tmp_path / f"{form.kind.singular}.yaml").write_text(exported)
        if exported:
            remaining.add(form.kind.singular)
            again = await ran(prompt, f"apply -f {file} --plan")
            assert again.out.endswith(" unchanged\n"), again
    assert remaining == {form.kind.singular for form in FORMS} - {"plugin-import"}
    (whole := tmp_path / "whole.json").write_text((await ran(prompt, "export -o json")).out)
    assert (await ran(prompt, f"apply -f {whole} --plan")).code == OK
    unchanged = await ran(prompt, f"apply -f {everything}")
    assert unchanged.out == "7 unchanged\n"


async def test_only_what_differs_is_changed_and_pruned_are_those_of_the_labels(
    prompt: Commands, tmp_path: Path
) -> None:
    (base := tmp_path / "base.yaml").write_text(
        "{kind: broker-cluster, name: ext2, spec: {external: {bootstrap_servers: '127.0.0.1:2'}}}"
    )
    (folder := tmp_path / "set").mkdir()
    small = "kind: wc\nname: small\nlabels: {set: s}\ngoal: STOPPED\nspec: {broker_cluster: ext2, count: 1}\n"
    (file := folder / "small.yaml").write_text(small)
    (folder / "old.json").write_text(
        json.dumps(
            {
                "kind": "topic",
                "name": "old",
                "labels": {"set": "s"},
                "goal": "ABSENT",
                "spec": {"broker_cluster": "ext2"},
            }
        )
    )
    await ran(prompt, f"apply -f {base} -f {folder}")
    file.write_text(small.replace("count: 1", "count: 2, properties: {offset.flush.interval.ms: 7}"))
    (folder / "old.json").unlink()
    planned = await ran(prompt, f"apply -f {folder} --prune -l set=s --plan", 2)
    assert planned.out == (
        "~ worker-cluster/small\n    count: 1 -> 2\n    properties.offset.flush.interval.ms: (none) -> 7\n"
        "- topic/old\n1 to change, 1 to remove\n"
    )
    printed = await ran(prompt, f"apply -f {folder} --prune -l set=s")
    assert printed.out == (
        "worker-cluster/small changed: count, properties.offset.flush.interval.ms\ntopic/old removed\n"
    )
    programs = json.loads((await ran(prompt, f"apply -f {folder} --prune -l set=s --plan -o json")).out)
    assert [shown_item["action"] for shown_item in programs["items"]] == ["none"]
    (folder / "old.json").write_text("[]")
    file.unlink()
    gone = await ran(prompt, f"apply -f {folder} --prune -l set=s --wait --timeout 60")
    assert gone.out == "worker-cluster/small removed\n"


async def test_nothing_is_done_where_one_of_many_is_refused(prompt: Commands, tmp_path: Path) -> None:
    (file := tmp_path / "many.yaml").write_text(
        "kind: topic\nname: fine\nspec: {broker_cluster: nowhere}\n---\n"
        "kind: topic\nname: wrong\nspec: {broker_cluster: ext, partitions: -1}\n---\n"
        "kind: secret\nname: good\nspec: {values: {a: b}}\n"
    )
    refused = await ran(prompt, f"apply -f {file}", USAGE)
    assert f"{file}: document 2 (line 5): topic/wrong: spec.partitions: -1 is not legal" in refused.err
    assert refused.err.endswith("nothing was changed\n")
    file.write_text(file.read_text().replace("partitions: -1", "partitions: 1"))
    missing = await ran(prompt, f"apply -f {file} --plan", FAILED)
    assert "document 1 (line 1): topic/fine: " in missing.err
    assert "'nowhere'" in missing.err
    await ran(prompt, "get secret good", 3)
