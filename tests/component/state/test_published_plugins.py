"""What is told of plugins as their makers publish them."""

from pathlib import Path

import pytest

from keelman.model.plugin import PluginKind
from keelman.runtime.java.maven import Lock, jars
from keelman.testing import jar_files
from keelman.workers.plugins.inspection import inspect, inspect_folder

pytestmark = pytest.mark.component
LOCKS = Path(jar_files.__file__).parent


async def test_mongo_which_has_no_service_files():
    found = inspect_folder((await jars(Lock.read(LOCKS / "mongo_connect.lock")))[0].parent)
    assert [(c.class_name, c.type, c.version, c.path) for c in found.classes] == [
        ("com.mongodb.kafka.connect.MongoSinkConnector", "sink", "2.0.1", "mongo-kafka-connect-2.0.1.jar"),
        ("com.mongodb.kafka.connect.MongoSourceConnector", "source", "2.0.1", "mongo-kafka-connect-2.0.1.jar"),
    ]


async def test_debezium_as_it_is_published():
    found = inspect((await jars(Lock.read(LOCKS / "debezium_postgres.lock")))[0])
    assert (found.kind, found.name, found.version) == (
        PluginKind.TAR_GZ, "debezium-connector-postgres", "3.7.0.Final",
    )  # fmt: skip
    connectors = [c.class_name for c in found.classes if c.type in ("source", "sink")]
    assert connectors == ["io.debezium.connector.postgresql.PostgresConnector"]
    assert {c.version for c in found.classes} == {"3.7.0.Final"}
    assert found.problems == ()
    assert len(found.classes) > 20
