"""The scale of a worker cluster, as an autoscaler outside reads and sets it: over HTTP and gRPC."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from keelman.api.connect.v1 import worker_cluster_service_pb2 as pb
from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerNodes
from keelman.model.errors import Conflict, FailedPrecondition, InvalidArgument
from keelman.rpc.channels import channel
from support.gateway.system import running_system
from support.state.service import Clients

pytestmark = pytest.mark.component


async def test_an_autoscaler_outside_reads_and_sets_the_number_of_workers(tmp_path: Path) -> None:
    async with (
        running_system(tmp_path, {"n1": "127.0.0.1"}) as system,
        channel(system.gateway.address) as link,
        httpx.AsyncClient(base_url=f"{system.http}/clusters/", trust_env=False, timeout=300) as http,
    ):
        clients = Clients(link)
        await clients.create_external("ext", "127.0.0.1:1")
        await clients.create_workers("counted", brokers="ext", count=2)
        await clients.create_workers("scaled", brokers="ext", autoscale=Autoscale(min_workers=2, max_workers=9))
        await clients.create_workers("fixed", brokers="ext", nodes=WorkerNodes(names=["n1"]))

        shown = (await http.get("counted/scale")).json()
        etag = shown.pop("etag")
        assert shown == {
            "worker_cluster": "counted", "workers": 2, "ready_workers": 0, "needed_workers": None, "min_workers": None,
            "max_workers": None,
        }  # fmt: skip
        answer = await http.put("counted/scale", json={"workers": 5, "etag": etag})
        assert (answer.status_code, answer.json()["workers"]) == (200, 5), answer.text
        assert (await clients.worker_cluster("counted")).spec.count == 5
        answer = await http.put("counted/scale", json={"workers": 6, "etag": etag})
        assert answer.status_code == 409, answer.text

        answer = await http.put("scaled/scale", json={"workers": 7})
        assert {key: answer.json()[key] for key in ("workers", "min_workers", "max_workers")} == {
            "workers": 7, "min_workers": 2, "max_workers": 9,
        }  # fmt: skip
        scaling = (await clients.worker_cluster("scaled")).status.scaling
        assert (scaling.workers, scaling.former_workers, scaling.reason) == (7, 2, "set by a caller")

        for path, body, status in (
            ("scaled/scale", b'{"workers": 10}', 400),
            ("counted/scale", b'{"workers": 0}', 400),
            ("counted/scale", b'{"workers": true}', 400),
            ("counted/scale", b"[3]", 400),
            ("counted/scale", b"{", 400),
            ("counted/scale", b" " * 5000, 400),
            ("fixed/scale", b'{"workers": 2}', 409),
            ("none/scale", b'{"workers": 2}', 404),
        ):
            answer = await http.put(path, content=body)
            assert (answer.status_code, answer.json()["error_code"]) == (status, status), f"{path} {body!r}"
        assert (await http.post("counted/scale", json={"workers": 2})).status_code == 405
        assert (await http.get("counted/sc%61le")).status_code == 503, "no other spelling: that is the workers' REST"

        scale = clients.clusters.ScaleWorkerCluster
        named = await scale(pb.ScaleWorkerClusterRequest(name="counted", workers=1))
        assert named.worker_cluster.status.wanted_workers == 1
        for error, request in (
            (Conflict, pb.ScaleWorkerClusterRequest(name="counted", workers=3, etag="former")),
            (InvalidArgument, pb.ScaleWorkerClusterRequest(name="scaled", workers=1)),
            (FailedPrecondition, pb.ScaleWorkerClusterRequest(name="fixed", workers=2)),
        ):
            with pytest.raises(error):
                await scale(request)
