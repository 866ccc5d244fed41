"""Requests about published Java plugins to a Connect worker: lists, keys, and validated configurations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from support.java.published import DEBEZIUM_POSTGRES, FILE_SINK, FILE_SOURCE

MONGO_SINK = "com.mongodb.kafka.connect.MongoSinkConnector"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
POSTGRES = {
    "connector.class": DEBEZIUM_POSTGRES,
    "name": "sea",
    "topic.prefix": "sea",
    "database.hostname": "127.0.0.1",
    "database.port": "1",
    "database.user": "keelman",
    "database.password": "unused",
    "database.dbname": "keelman",
}
_TWO = {"transforms": "unwrap,mark", "transforms.unwrap.type": UNWRAP, "transforms.mark.type": "InsertField$Value"}
CONFIGS: dict[str, dict[str, str]] = {
    "file source: whole": {"connector.class": FILE_SOURCE, "name": "a", "topic": "t", "file": "/tmp/x"},
    "file source: no topic": {"connector.class": FILE_SOURCE, "name": "a", "batch.size": "many"},
    "file source: exactly once": {
        "connector.class": FILE_SOURCE,
        "name": "a",
        "topic": "t",
        "exactly.once.support": "required",
        "transaction.boundary": "connector",
    },
    "file sink: whole": {"connector.class": FILE_SINK, "name": "a", "topics": "t"},
    "postgres: nothing": {"connector.class": DEBEZIUM_POSTGRES, "name": "sea"},
    "postgres: wrong values": {**POSTGRES, "database.port": "port", "snapshot.mode": "nope", "plugin.name": "wal"},
    "postgres: transforms": {**POSTGRES, **_TWO, "transforms.unwrap.delete.tombstone.handling.mode": "nope"},
    "postgres: unknown transform": {**POSTGRES, "transforms": "x", "transforms.x.type": "com.acme.Nope"},
    "mongo sink: nothing": {"connector.class": MONGO_SINK, "name": "m", "topics": "t"},
    "mongo sink: wrong values": {
        "connector.class": MONGO_SINK,
        "name": "m",
        "topics": "t",
        "connection.uri": "http://nowhere",
        "max.num.retries": "-1",
        "database": "d",
    },
}
KEYS = (DEBEZIUM_POSTGRES, FILE_SOURCE, FILE_SINK, MONGO_SINK, UNWRAP)
Ask = Callable[[str, str, Any], Awaitable[httpx.Response]]


async def play(ask: Ask, name_of: Callable[[str], str] = lambda class_name: class_name) -> dict[str, Any]:
    """The answers by request. `name_of` returns the name that a class has on this worker."""
    actual_play: dict[str, Any] = {}
    for only in ("true", "false"):
        answer = await ask("GET", f"/connector-plugins?connectorsOnly={only}", None)
        actual_play[f"plugins: connectors only {only}"] = answer.json()
    for class_name in KEYS:
        answer = await ask("GET", f"/connector-plugins/{name_of(class_name)}/config", None)
        actual_play[f"keys: {class_name}"] = answer.json()
    for name, config in CONFIGS.items():
        actual_play[f"validate: {name}"] = await _validated(ask, config, name_of(config["connector.class"]))
    return actual_play


def told(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The compared part of the answers.

    Of keys all except texts in the worker's own words; of validated configurations the errors, the values, and the
    names of the keys.
    """
    return {name: _told(name.partition(":")[0], answer) for name, answer in answer.items()}


def _told(about: str, answer: Any) -> Any:
    if about == "plugins":
        return sorted(answer, key=lambda entry: (entry["class"], entry["type"], entry["version"]))
    if about == "keys":
        return {entry["name"]: {**entry, "documentation": entry["documentation"][:40]} for entry in answer}
    values = [config["value"] for config in answer["configs"]]
    return {value["name"]: [value["value"], value["visible"], *value["errors"]] for value in values}


async def _validated(ask: Ask, config: Mapping[str, str], class_name: str) -> Any:
    fields = {**config, "connector.class": class_name}
    for _ in range(3):  # its validation tries to connect to databases
        answer = await ask("PUT", f"/connector-plugins/{class_name}/config/validate", fields)
        if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
            break
        await asyncio.sleep(1)
    return answer.json()
