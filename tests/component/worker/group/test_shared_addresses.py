"""Two live workers of one group that advertise the same address: it is reported, and no request loops between them."""

import asyncio
import contextlib
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.eventually import eventually
from support.worker.processes import WorkerProcess, link_side, workers

pytestmark = pytest.mark.component

GROUP = "shared"
SOURCE = {"connector.class": "FileStreamSource", "file": "/nowhere/in", "topic": "shared-data"}
TOLD = "address_shared"


def last_place(worker: WorkerProcess) -> tuple[int, str, bool]:
    """Generation, member id and whether it leads, from the worker's last log line about them."""
    matches = re.findall(r" joined +member=(\S+) generation=(\d+) leader=(\w+)", worker.output)
    member, generation, leader = matches[-1] if matches else ("", "0", "False")
    return int(generation), member, leader == "True"


async def test_two_live_workers_of_one_address(bootstrap: str, tmp_path: Path) -> None:
    """As two machines with `listeners=http://localhost:8083`: each reaches itself there."""
    async with contextlib.AsyncExitStack() as machines:

        async def worker(name: str, group: str, **extra: str) -> WorkerProcess:
            _, spark = await machines.enter_async_context(link_side())
            extra = {key.replace("_", "."): value for key, value in extra.items()}
            return WorkerProcess(tmp_path / name, bootstrap, group, spark, extra)

        single_worker = await worker("one", GROUP)
        two = await worker("two", GROUP, rest_advertised_port=str(single_worker.port))
        stranger = await worker("stranger", f"{GROUP}-not", rest_advertised_port=str(single_worker.port))
        pair = single_worker, two

        def settled() -> bool:
            (at, member, leads), (also_at, other, also_leads) = map(last_place, pair)
            return at == also_at and member != other and leads != also_leads

        async with workers(single_worker, two, stranger):
            await eventually(settled, what="both are in the group")
            leader, other = sorted(pair, key=last_place_leads, reverse=True)
            members = [last_place(w)[1] for w in pair]

            async def create(at: WorkerProcess, name: str) -> httpx.Response:
                async with asyncio.timeout(300):
                    answer: httpx.Response = await at.ask("POST", "/connectors", {"name": name, "config": SOURCE})
                    return answer

            def is_told(answer: httpx.Response) -> bool:
                document: str = answer.json()["message"]
                named = [f"http://{single_worker.id}/", "rest.advertised.host.name", "rest.advertised.port", *members]
                return answer.status_code == 500 and all(text in document for text in named)

            refused = await create(other, "none")
            assert is_told(refused), refused.text
            for w in pair:
                await eventually(lambda w=w: w.output.count(TOLD) == 1)  # type: ignore[misc]
                assert all(member in w.output.split(TOLD)[1] for member in members)
            names = [f"c{n}" for n in range(4)]
            for name in names:
                response = await create(leader, name)
                assert response.status_code == 201, response.text
            for name in names:
                await other.reaches(name, "RUNNING", "RUNNING")
            answers: list[Any] = [await leader.ask("POST", f"/connectors/{name}/tasks/0/restart") for name in names]
            assert {answer.status_code for answer in answers} == {204, 500}, "they share the tasks"
            assert all(answer.status_code == 204 or is_told(answer) for answer in answers)
            assert (await create(stranger, "elsewhere")).status_code == 201, "another group's is no matter"
            assert TOLD not in stranger.output

            assert await two.end() == 0
            two.extra["rest.advertised.port"] = str(two.port)
            for name in ("moved", "killed"):  # the second time its former member is still in the group
                await two.start()
                response = await create(two, name)
                assert response.status_code == 201, response.text
                await two.end(signal.SIGKILL)
            assert [w.output.count(TOLD) for w in pair] == [1, 1]


def last_place_leads(worker: WorkerProcess) -> bool:
    """Whether it led the last round that it logged."""
    return last_place(worker)[2]
