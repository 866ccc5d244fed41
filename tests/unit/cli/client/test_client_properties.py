"""The client properties with which the command line connects to brokers."""

from typing import Any, cast

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import (
    BrokerCluster,
    BrokerClusterSpec,
    BrokerClusterStatus,
    ExternalBrokers,
    ManagedBrokers,
)
from keelman.cli.client.gateway import Gateway
from keelman.model.errors import FailedPrecondition

TRUST = {"security.protocol": "SSL", "ssl.truststore.certificates": "a PEM text"}


async def asked(spec: BrokerClusterSpec, status: BrokerClusterStatus) -> dict[str, str]:
    class Known:
        async def get(self, kind: Any, name: str) -> BrokerCluster:
            return BrokerCluster(name=name, spec=spec, status=status)

    return await Gateway.client_properties(cast(Any, Known()), "b")


async def test_brokers_with_tls_are_trusted_by_what_their_status_says() -> None:
    managed = BrokerClusterSpec(managed=ManagedBrokers(nodes=["n1"]))
    status = BrokerClusterStatus(bootstrap_servers="h:1", client_properties=TRUST)
    assert await asked(managed, status) == {**TRUST, "bootstrap.servers": "h:1"}


@pytest.mark.parametrize(
    ("external", "more", "named"),
    [
        (ExternalBrokers(credential_profile="kafka"), {}, "what secret 'kafka' says"),
        (ExternalBrokers(client_properties={"sasl.jaas.config": "[hidden]"}), {}, "need sasl.jaas.config, which"),
        (None, {**TRUST, "ssl.keystore.key": "[hidden]"}, "need ssl.keystore.key, which are secret"),
    ],
)
async def test_what_nobody_is_shown_cannot_be_asked_with(
    external: ExternalBrokers | None, more: dict[str, str], named: str
) -> None:
    spec = BrokerClusterSpec(external=external) if external else BrokerClusterSpec(managed=ManagedBrokers(nodes=["n"]))
    with pytest.raises(FailedPrecondition, match=named) as refused:
        await asked(spec, BrokerClusterStatus(bootstrap_servers="h:1", client_properties=more))
    assert refused.value.reason == "HIDDEN"
