"""The descriptions of plugins as their makers publish them."""

from pathlib import Path

import pytest

from keelman.connectors.java import jvm
from keelman.model.plugins.plugin import PluginKind
from keelman.runtime.java.maven import Lock, jars
from keelman.workers.plugins.inspection import inspect, inspect_folder
from support.plugins import jar_files

pytestmark = pytest.mark.component
KINDS = ("sink", "source", "converter", "header_converter", "predicate", "transformation")
LOCKS = Path(jar_files.__file__).parent


async def test_mongo_which_has_no_service_files():
    actual_inspect_folder = inspect_folder((await jars(Lock.read(LOCKS / "mongo_connect.lock")))[0].parent)
    assert [(c.class_name, c.type, c.version, c.path) for c in actual_inspect_folder.classes] == [
        ("com.mongodb.kafka.connect.MongoSinkConnector", "sink", "2.0.1", "mongo-kafka-connect-2.0.1.jar"),
        ("com.mongodb.kafka.connect.MongoSourceConnector", "source", "2.0.1", "mongo-kafka-connect-2.0.1.jar"),
    ]


async def test_debezium_as_it_is_published():
    inspection = inspect((await jars(Lock.read(LOCKS / "debezium_postgres.lock")))[0])
    assert (inspection.kind, inspection.name, inspection.version) == (
        PluginKind.TAR_GZ, "debezium-connector-postgres", "3.7.0.Final",
    )  # fmt: skip
    connectors = [c.class_name for c in inspection.classes if c.type in ("source", "sink")]
    assert connectors == ["io.debezium.connector.postgresql.PostgresConnector"]
    assert {c.version for c in inspection.classes} == {"3.7.0.Final"}
    assert inspection.problems == ()
    assert len(inspection.classes) > 20


async def test_connects_own_jars_have_what_its_rest_api_lists():
    actual_inspect_folder = inspect_folder(
        (await jars(Lock.read(Path(jvm.__file__).with_name("connect_runtime.lock"))))[0].parent
    )
    assert actual_inspect_folder.problems == ()
    room = "org.apache.kafka.connect."
    named = {
        kind: {c.class_name.removeprefix(room) for c in actual_inspect_folder.classes if c.type == kind}
        for kind in KINDS
    }
    numbers = {f"converters.{kind}Converter" for kind in ("Boolean", "Double", "Float", "Integer", "Long", "Short")}
    converters = {"converters.ByteArrayConverter", "json.JsonConverter", "storage.StringConverter", *numbers}
    both = ("Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField", "ReplaceField",
            "SetSchemaMetadata", "TimestampConverter")  # fmt: skip
    single = ("DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey")
    assert named == {
        "sink": {"file.FileStreamSinkConnector"},
        "source": {
            "file.FileStreamSourceConnector",
            *(f"mirror.Mirror{what}Connector" for what in ("Source", "Checkpoint", "Heartbeat")),
        },
        "converter": converters,
        "header_converter": converters | {"storage.SimpleHeaderConverter"},
        "predicate": {f"transforms.predicates.{n}" for n in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")},
        "transformation": {f"transforms.{n}" for n in single}
        | {f"transforms.{name}${part}" for name in both for part in ("Key", "Value")},
    }
