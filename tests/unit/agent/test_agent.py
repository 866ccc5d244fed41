"""The agent as a whole: one agent per home, and its reports on its workloads."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from keelman.agent.api import AgentApi
from keelman.agent.service import lock
from keelman.agent.workloads.local import words_of
from keelman.api.node.v1.agent_service_pb2 import ListLocalWorkloadsRequest
from keelman.api.node.v1.workload_pb2 import BrokerWorkload, SparkWorkload, WorkerWorkload, Workload, WorkloadSpec
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.runtime.home import Home
from keelman.runtime.processes.children import Exit


@pytest.mark.parametrize(
    ("end", "seen", "words"),
    [
        (Exit(1, "X", "the hold is full"), True, "the hold is full"),
        (Exit(3), True, "ended by itself with exit code 3; last line of its log: oops"),
        (Exit(-signal.SIGSEGV), True, "was ended by SIGSEGV; last line of its log: oops"),
        (
            Exit(None),
            False,
            "ended while no agent was there and left no exit record: it was killed; last line of its log: oops",
        ),
    ],
)
def test_words_about_an_end(end: Exit, seen: bool, words: str) -> None:
    assert words_of(end, "oops", seen=seen) == words


def test_one_agent_a_home(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with lock(home), pytest.raises(FailedPrecondition, match="another agent") as caught, lock(home):
        pass
    assert caught.value.reason == "HOME_IN_USE"
    with lock(home):
        pass
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidArgument, match=r"agent\.home"), lock(Home(file)):
        pass


async def test_what_an_agent_says_of_its_workloads_has_no_properties() -> None:
    client = {"sasl.jaas.config": "hunter2"}
    specs = (
        WorkloadSpec(worker=WorkerWorkload(properties=client, reports_client_properties=client)),
        WorkloadSpec(spark=SparkWorkload(master="local", reports_client_properties=client)),
        WorkloadSpec(broker=BrokerWorkload(properties=client)),
        WorkloadSpec(),
    )

    class Node:
        def workloads(self) -> list[Workload]:
            return [Workload(name="x", spec=spec) for spec in specs]

    answer = await AgentApi(Node()).ListLocalWorkloads(ListLocalWorkloadsRequest(), None)
    assert len(answer.workloads) == len(specs)
    assert "hunter2" not in str(answer)
