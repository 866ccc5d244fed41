"""The references to a secret."""

from pathlib import Path

import pytest

from keelman.api.connect.v1 import secret_service_pb2 as pb
from keelman.api.connect.v1 import worker_configuration_service_pb2 as wf
from keelman.model.connectors.dedicated_connector import Capacity, DedicatedConnectorSpec, WorkerConfigurationRef
from keelman.model.errors import FailedPrecondition
from keelman.state.dedicated.life import create
from keelman.state.nouns import secret, worker_configuration
from support.state.stores import open_store

PROVIDER = "config.providers=secrets\nconfig.providers.secrets.class=keelman.SecretsConfigProvider\n"


@pytest.mark.parametrize("converter", ["com.acme.Avro", "org.apache.kafka.connect.json.JsonConverter"])
async def test_what_a_dedicated_connector_has_of_its_worker_configuration_refers_to_secrets(
    tmp_path: Path, converter: str
) -> None:
    """A plugin's converter belongs to the connector, a converter of keelman's to its workers."""
    content = f"{PROVIDER}key.converter={converter}\nvalue.converter={converter}\n"
    content += "value.converter.basic.auth.user.info=${secrets:reg:user}\n"
    spec = DedicatedConnectorSpec(
        "orders", {"connector.class": "x.Source", "db.password": "${secrets:db:key}"}, bootstrap_servers="b:2",
        capacity=Capacity(1), worker_configuration=WorkerConfigurationRef("w"),
    )  # fmt: skip
    async with open_store(str(tmp_path / "state.db")) as store:
        async with store.write() as tx:
            for name in ("reg", "db", "other"):
                secret.create(tx, pb.CreateSecretRequest(name=name, values={"user": f"of-{name}"}))
            worker_configuration.create(tx, wf.CreateWorkerConfigurationRequest(name="w", content=content.encode()))
            create(tx, "one", spec)
        for name in ("reg", "db"):
            with pytest.raises(FailedPrecondition, match=r"referred to by (dedicated connector|worker cluster) one"):
                async with store.write() as tx:
                    secret.delete(tx, pb.DeleteSecretRequest(name=name))
        async with store.write() as tx:
            secret.delete(tx, pb.DeleteSecretRequest(name="other"))
