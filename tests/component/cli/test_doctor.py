"""`keelman doctor` before a real gateway, state service and broker, with faults that the test causes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keelman.cli.exits import FAILED, OK
from keelman.runtime.processes.ports import free_ports
from support.cli.commands import commands, write_home
from support.eventually import eventually
from support.gateway.system import running_system
from support.kafka.topics import create_topic

pytestmark = pytest.mark.component


async def test_what_is_wrong_is_found_with_its_remedy(tmp_path: Path, bootstrap: str, name: str) -> None:
    (home := tmp_path / "home").mkdir()
    create_topic(bootstrap, f"{name}.connect-configs", 3, **{"cleanup.policy": "delete"})
    async with running_system(tmp_path) as system:
        write_home(system, home)
        async with commands(home) as prompt:

            async def looked() -> dict[tuple[str, str], str]:
                outcome = await prompt.run(["doctor", "-o", "json"])
                document = json.loads(outcome.out)["findings"]
                assert outcome.code == (FAILED if document else OK), outcome
                assert all(entry["remedy"] for entry in document)
                return {(entry["check"], entry["subject"]): entry["problem"] for entry in document}

            # The nodes of this system report the version "test".
            assert set(await looked()) == {("versions", f"node/{node}") for node in system.nodes}
            for line in (
                f"create bc real --bootstrap-servers {bootstrap}",
                "create bc away --bootstrap-servers 127.0.0.1:1",
                f"create wc {name} --broker-cluster real --count 1",
            ):
                assert (await prompt.run(line.split())).code == OK

            async def all_of_it() -> dict[tuple[str, str], str] | None:
                findings = await looked()
                return findings if {"network", "topics"} <= {check for check, _ in findings} else None

            findings = await eventually(all_of_it, what="brokers have been checked")
            assert "127.0.0.1:1" in findings["network", "broker-cluster/away"]
            assert "has 3 partitions" in findings["topics", f"worker-cluster/{name}"]
            text = (await prompt.run(["doctor"])).out
            assert f"config topic {name}.connect-configs has cleanup.policy=delete" in text
            assert f"connector policy of {name}: open" in text.splitlines()
            assert text.splitlines()[-1].startswith(
                "5 findings; looked at 2 nodes, 2 broker-clusters, 1 worker-cluster"
            )
            assert (await prompt.run(["update", "bc", "real", "--set", "ssl.key.password=pa55"])).code == OK
            findings = await eventually(all_of_it, what="brokers with a secret are checked, too")
            assert "has 3 partitions" in findings["topics", f"worker-cluster/{name}"]
            closed = await prompt.run(["doctor", "--gateway", f"127.0.0.1:{free_ports(1)[0]}"])
            assert closed.code == FAILED
            assert "no process accepts connections there" in closed.out
