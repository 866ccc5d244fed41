"""Our workers' answers about plugins and configurations equal Kafka Connect's (tests/recorded/worker/validate.json).

Everything is compared except documentation, which is our own, and the differences that the tables below name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from keelman.connect.config.connector_keys import sink_keys
from keelman.connect.config.info import key_info
from keelman.connect.errors import ConfigValueError
from keelman.connectors import registry
from keelman.model.errors import InvalidArgument, NotFound
from keelman.worker.asking.third_party import problems_of
from keelman.worker.errors import RestError, invalid_config
from keelman.worker.rest import plugins
from recorded.worker.validate_cases import WORKERS
from support.places import RECORDED_FOLDER

RECORD = json.loads((RECORDED_FOLDER / "worker" / "validate.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in RECORD["cases"]}
STRING = "org.apache.kafka.connect.storage.StringConverter"
THEIRS = "org.apache.kafka.connect."
COUCHBASE = f"{THEIRS}couchbase.CouchbaseSourceConnector"  # in Connect's package, but not part of Connect
KNOWN = {entry["class"] for entry in asyncio.run(plugins.list_plugins(connectors_only=False))} - {COUCHBASE}
OURS = "keelman."
CONFLUENT = "io.confluent."  # converters that do not come with Kafka Connect

# Keys and values that only one side has, left out on that side.
OWN_KEYS = {"use.defaults.from": "a key of Connect's filter of properties, which is part of the mirror here"}
OWN_GROUPS = ("Copying", "Restarts", "Bad Records")  # of keys that begin with keelman., and of sources' dead letters
LACKING_KEYS = {
    "forwarding.admin.class": "no Java class is loaded to administer clusters",
    "topic.filter.class": "no Java class is loaded to choose topics: topics and topics.exclude do",
    "config.property.filter.class": "no Java class is loaded to choose properties: config.properties.exclude does",
    "metric.reporters": "metrics are served on /metrics",
    "metric.names.formats": "metrics are served on /metrics",
    "config.providers": "a mirror's own configuration providers; the worker's resolve references here",
}
NULL_POINTER = "Cannot invoke"  # Connect's patterns, where they are missing, have a second error: Java's own
MIRROR_SECURITY = ("security.", "ssl.", "sasl.")  # of both clusters' clients, taken under source. and target. here

# Cases with other answers, and the reason.
DIFFERENT = {
    "value.converter='java.lang.String'": "a Java class that is no plugin is not found here",
    "transforms.x.type='java.lang.String'": "a Java class that is no plugin is not found here",
    "keys of java.lang.String": "a class that is no plugin is unknown, where Connect says 500",
    "keys of org.apache.kafka.connect.transforms.InsertField": "an abstract class is unknown, where Connect says 500",
    "create source connector.plugin.version='9.9'": "Connect's 500 is of a null pointer; ours is the list of errors",
    "key.converter.schema.content='{'": "a schema that cannot be read is refused here; Connect's task fails with it",
    "mirror exactly.once.support='required'": "mirrors read committed records here unless told otherwise",
    "mirror source.cluster.alias=None, topics='('": "patterns of topics are checked here",
    "sasl.jaas.config=": "a JAAS configuration that cannot be read is refused here",
    "name='other": "names with control characters meet the creation's own check of names first",
}


def worker(name: str) -> dict[str, str]:
    """The properties of a worker of the record."""
    return {"group.id": f"validate-{name}", "key.converter": STRING, "value.converter": STRING, **WORKERS[name]}


async def ours(case: dict[str, Any]) -> tuple[int, Any]:
    """Status and answer of our functions for a recorded request."""
    path, _, query = case["path"].partition("?")
    values = {key: values[-1] for key, values in parse_qs(query, keep_blank_values=True).items()}
    parts = path.split("/")
    try:
        if path == "/connector-plugins":
            return 200, await plugins.list_plugins(connectors_only=values.get("connectorsOnly", "true") == "true")
        if case["method"] == "GET":
            return 200, await plugins.keys_of(parts[2], values.get("version"))
        if case["method"] == "PUT":
            return 200, await plugins.validate_config(parts[2], case["body"], worker(case["worker"]))
        raise created(case)
    except RestError as error:
        return error.status, {"error_code": error.status, "message": error.message}


def created(case: dict[str, Any]) -> RestError:
    """The error with which a connector is not created."""
    config = {"name": case["body"]["name"], **case["body"]["config"]}
    try:
        return invalid_config([problem.message for problem in problems_of(config, worker(case["worker"]))])
    except (NotFound, InvalidArgument) as error:
        return RestError(400, error.message)
    except ConfigValueError as error:
        return RestError(500, str(error))


def recorded(case: dict[str, Any]) -> Any:
    """The recorded answer, complete except for documentation."""
    answer = case["answer"]
    if isinstance(answer, dict) and "configs" in answer:
        configs = [
            {"definition": None if key < 0 else RECORD["definitions"][key], "value": dict(RECORD["values"][value])}
            for key, value in answer["configs"]
        ]
        return {**answer, "configs": configs}
    if isinstance(answer, dict) and "keys" in answer:
        return [RECORD["definitions"][key] for key in answer["keys"]]
    return answer


def of_both(answer: Any) -> Any:
    """The part of an answer that both sides have."""
    if isinstance(answer, dict) and "configs" in answer:
        configs = [config_of_both(config) for config in answer["configs"] if not own(config["definition"])]
        configs = [config for config in configs if shared(config["value"]["name"])]
        errors = sum(len(config["value"]["errors"]) for config in configs)
        assert answer["error_count"] == sum(len(config["value"]["errors"]) for config in answer["configs"])
        groups = [group for group in answer["groups"] if group not in OWN_GROUPS]
        return {**answer, "error_count": errors, "groups": groups, "configs": configs}
    if isinstance(answer, list):
        listed = [
            entry for entry in answer if "class" not in entry or (entry["class"] in KNOWN and THEIRS in entry["class"])
        ]
        return [
            undocumented(entry) for entry in listed if "name" not in entry or (shared(entry["name"]) and not own(entry))
        ]
    if isinstance(answer, dict) and answer.get("message"):
        message = answer["message"].partition("available connectors are: ")[0]
        return {**answer, "message": message.replace("org.apache.kafka.connect.errors.ConnectException: ", "")}
    return answer


def config_of_both(entry: dict[str, Any]) -> dict[str, Any]:
    value = dict(entry["value"])
    value["errors"] = [text for text in value["errors"] if NULL_POINTER not in text]
    offered = [value for value in value["recommended_values"] if not value.startswith(CONFLUENT)]
    value["recommended_values"] = [
        value_offered for value_offered in offered if THEIRS not in value_offered or value_offered in KNOWN
    ]
    return {"definition": entry["definition"] and undocumented(entry["definition"]), "value": value}


def undocumented(definition: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in definition.items() if key != "documentation"}


def own(definition: dict[str, Any] | None) -> bool:
    return definition is not None and definition["group"] in OWN_GROUPS


def shared(name: str) -> bool:
    """Whether both sides have the key."""
    plain = name.partition(".converter.")[2] or name
    return (
        not name.startswith(OURS) and plain not in {**OWN_KEYS, **LACKING_KEYS} and not name.startswith(MIRROR_SECURITY)
    )


def named_classes(case: dict[str, Any]) -> Iterator[str]:
    """The plugins of Connect's that an answer is about."""
    answer = recorded(case)
    if isinstance(answer, dict) and "configs" in answer:
        values = (config["value"] for config in answer["configs"])
        yield from (v["value"] for v in values if v["name"].endswith((".type", ".converter")) and v["value"])
    elif case["method"] == "GET" and case["status"] == 200 and len(case["path"].split("/")) > 2:
        name = case["path"].split("/")[2]
        yield registry.full_name(name) or f"{THEIRS}{name}"


def different(name: str) -> bool:
    return any(part in name for part in DIFFERENT)


def ready(case: dict[str, Any]) -> bool:
    """Whether all plugins that it is about are available."""
    return all(
        named_cls in KNOWN or THEIRS not in named_cls or named_cls.endswith("Connector")
        for named_cls in named_classes(case)
    )


COMPARED = [name for name, case in CASES.items() if ready(case) and not different(name)]


@pytest.mark.parametrize("name", COMPARED)
async def test_as_connect(name: str) -> None:
    case = CASES[name]
    status, answer = await ours(case)
    assert (status, of_both(answer)) == (case["status"], of_both(recorded(case)))


async def test_what_is_said_to_differ_does() -> None:
    same = []
    for part in DIFFERENT:
        cases = [case for name, case in CASES.items() if part in name and ready(case)]
        answers = [(case, await ours(case)) for case in cases]
        if answers and all((s, of_both(a)) == (c["status"], of_both(recorded(c))) for c, (s, a) in answers):
            same.append(part)
    assert same == []


def test_most_cases_are_compared() -> None:
    assert len(COMPARED) >= 340


def test_fields_in_connects_order() -> None:
    (first, *_) = sink_keys().keys.values()
    assert list(key_info(first)) == RECORD["fields"]
