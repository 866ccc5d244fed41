"""Several writes together: in one transaction or none, each judged after the writes before it."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.connect.v1 import batch_service_pb2 as pb
from keelman.api.connect.v1.batch_service_pb2_grpc import BatchServiceStub
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2 import (
    CreateBrokerClusterRequest,
    ListBrokerClustersRequest,
    UpdateBrokerClusterRequest,
)
from keelman.api.connect.v1.secret_service_pb2 import CreateSecretRequest, DeleteSecretRequest, ListSecretsRequest
from keelman.api.connect.v1.topic_pb2 import TopicSpec
from keelman.api.connect.v1.topic_service_pb2 import ApplyTopicRequest, CreateTopicRequest, UpdateTopicRequest
from keelman.model.errors import InvalidArgument
from keelman.rpc.batches import answer_in, packed
from keelman.rpc.errors import translated
from support.state.service import Clients, state_in_loop

pytestmark = pytest.mark.component
EXTERNAL = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="127.0.0.1:1"))
BROKERS = CreateBrokerClusterRequest(name="b", spec=EXTERNAL)
TOPIC = CreateTopicRequest(name="t", spec=TopicSpec(broker_cluster="b"))
SECRET = CreateSecretRequest(name="s", values={"k": "v"})


async def write(clients: Clients, *writes: Any, **fields: Any) -> pb.WriteBatchResponse:
    request = pb.WriteBatchRequest(writes=[packed(write) for write in writes], **fields)
    with translated():
        response: pb.WriteBatchResponse = await BatchServiceStub(clients.channel).WriteBatch(request)
        return response


async def names(clients: Clients) -> tuple[list[str], list[str]]:
    brokers = await clients.brokers.ListBrokerClusters(ListBrokerClustersRequest())
    secrets = await clients.secrets.ListSecrets(ListSecretsRequest())
    return [broker_cluster.name for broker_cluster in brokers.broker_clusters], [
        secret.name for secret in secrets.secrets
    ]


async def test_all_of_a_batch_is_stored_or_nothing(tmp_path):
    async with state_in_loop(tmp_path) as (clients, _):
        judged = await write(clients, BROKERS, TOPIC, SECRET, validate_only=True)
        assert [write.changed for write in judged.results] == [True] * 3
        assert answer_in(judged.results[1].answer).topic.spec.topic == "t"
        assert not judged.stored
        assert await names(clients) == ([], [])

        wrong = TopicSpec(broker_cluster="b", partitions=3, config={"retention.ms": "long"})
        refused = await write(clients, BROKERS, CreateTopicRequest(name="u", spec=wrong), SECRET, SECRET)
        assert [write.WhichOneof("result") for write in refused.results] == ["answer", "error", "answer", "error"]
        assert refused.results[1].error.code == "INVALID_ARGUMENT"
        assert "retention.ms" in refused.results[1].error.message
        assert refused.results[3].error.code == "ALREADY_EXISTS"
        assert not refused.stored
        assert await names(clients) == ([], [])

        done = await write(clients, BROKERS, TOPIC, SECRET, ApplyTopicRequest(name="t", goal=2), request_id="r1")
        assert done.stored
        assert answer_in(done.results[3].answer).operation.target.goal == "PRESENT"
        assert await names(clients) == (["b"], ["s"])
        assert await write(clients, BROKERS, request_id="r1") == done

        same = await write(
            clients,
            UpdateBrokerClusterRequest(name="b", spec=EXTERNAL),
            UpdateTopicRequest(name="t", spec=TopicSpec(broker_cluster="b")),
            DeleteSecretRequest(name="s"),
        )
        assert [write.changed for write in same.results] == [False, False, True]
        assert await names(clients) == (["b"], [])


async def test_what_is_no_batch_is_refused(tmp_path):
    async with state_in_loop(tmp_path) as (clients, _):
        for writes, message in (
            ([], r"writes: '0 requests' is not legal: 1 to 1000"),
            ([SECRET] * 1001, r"writes: '1001 requests' is not legal"),
            ([SECRET, ListSecretsRequest()], r"writes\[1\]: .*ListSecretsRequest' is not legal: a request that writes"),
        ):
            with pytest.raises(InvalidArgument, match=message):
                await write(clients, *writes)
        request = pb.WriteBatchRequest(writes=[packed(SECRET)])
        request.writes[0].value = b"\xff"
        with translated(), pytest.raises(InvalidArgument, match=r"writes\[0\]: not a keelman.api.connect.v1.Create"):
            await BatchServiceStub(clients.channel).WriteBatch(request)
