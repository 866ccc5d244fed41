"""The OpenAPI document: it is legal, covers all served calls, and its schemas are as strict as the answers."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, cast

import jsonschema_rs
import pytest
import schemathesis

from keelman.gateway.ohara.openapi.document import document
from keelman.gateway.ohara.openapi.kinds import KINDS
from keelman.gateway.ohara.routes import PREFIX, OharaApi
from keelman.gateway.ohara.service import ohara_api
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.settings import Settings
from keelman.rpc.channels import channel
from support.gateway.ohara.schemas import Schemas

METHODS = {"get", "put", "post", "delete"}
WORKER: dict[str, Any] = {
    "brokerClusterKey": {"group": "default", "name": "bk"},
    "name": "wk",
    "group": "default",
    "nodeNames": ["node00"],
    "aliveNodes": [],
    "imageName": "oharastream/connect-worker:0.11.1",
    "routes": {},
    "tags": {},
    "xms": 2048,
    "xmx": 2048,
    "clientPort": 45127,
    "jmxPort": 33333,
    "freePorts": [],
    "pluginKeys": [],
    "sharedJarKeys": [],
    **{f"{kind}.storage.topic": "af4b4d49234a4848bb90fb452" for kind in ("config", "offset", "status")},
    **{f"{kind}.storage.partitions": 1 for kind in ("config", "offset", "status")},
    **{f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")},
    "group.id": "af4b4d49234a4848bb90fb452",
    "lastModified": 1578982566359,
}


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [(m, path, call) for path, calls in document()["paths"].items() for m, call in calls.items()]


def test_the_document_is_legal() -> None:
    for schema in document()["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)
    read = schemathesis.openapi.from_dict(document())
    assert len(list(read.get_all_operations())) == len(operations())
    ids = Counter(answer["operationId"] for _, _, answer in operations())
    assert [name for name, count in ids.items() if count > 1] == []
    assert {method for method, _, _ in operations()} == METHODS
    for _, path, answer in operations():
        named = {p["name"] for p in answer.get("parameters", ()) if p["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path)), path
        assert {"400", "404", "500"} < set(answer["responses"])


async def nothing_behind() -> OharaApi:
    """The API as it is wired, without a state service."""
    async with channel("127.0.0.1:1") as nowhere:
        apps = ohara_api(OharaControl(nowhere), cast(Any, None), Settings(), read_log=cast(Any, None))
    api = apps[PREFIX]
    assert isinstance(api, OharaApi)
    return api


async def test_what_is_served_is_in_it_and_nothing_else() -> None:
    api = await nothing_behind()
    documented = {f"{m.upper()} {path}" for m, path, _ in operations()}
    served = {f"{e.method} /v0/{e.pattern}" for e in api.endpoints} | {"DELETE /_private"}
    for kind in KINDS:
        assert kind.path in api.resources, kind.path
    for path in api.resources:
        served |= {f"GET /v0/{path}", f"POST /v0/{path}"}
        item_path = next(p for p in document()["paths"] if re.fullmatch(rf"/v0/{path}/\{{\w+\}}", p))
        served |= {f"{method} {item_path}" for method in ("GET", "PUT", "DELETE")}
    verbs = {d for d in documented if re.search(r"^(PUT|DELETE) /v0/\w+/\{\w+\}/", d)}

    def plain(calls: set[str]) -> set[str]:
        return {re.sub(r"\{\w+\}", "{}", call) for call in calls}

    assert plain(documented - verbs) == plain(served - verbs)


def test_an_answer_is_held_to_its_schema() -> None:
    schemas = Schemas(document())
    schemas.check("GET", "/v0/workers", 200, [WORKER, WORKER | {"mine": {"a": [1, True, "x"]}}])
    schemas.check("PUT", "/v0/workers/wk", 200, WORKER | {"state": "RUNNING", "error": "node01: gone"})
    wrongs: list[dict[str, Any]] = [
        *({name: value} for name in ("error", "mine", "group") for value in ("", None)),
        {"state": "STOPPED"}, {"tags": {"a": [""]}}, {"clientPort": 0}, {"clientPort": "1"}, {"nodeNames": []},
        {"brokerClusterKey": "bk"}, {"brokerClusterKey": {"name": "bk"}}, {"lastModified": 1.5}, {"aliveNodes": None},
    ]  # fmt: skip
    for wrong in wrongs:
        with pytest.raises(AssertionError):
            schemas.check("GET", "/v0/workers/wk", 200, WORKER | wrong)
    for name in WORKER:
        with pytest.raises(AssertionError):
            schemas.check("GET", "/v0/workers/wk", 200, {k: v for k, v in WORKER.items() if k != name})
    with pytest.raises(AssertionError, match="is not documented"):
        schemas.check("GET", "/v0/workers/wk", 409, {})
    with pytest.raises(AssertionError, match="is not documented"):
        schemas.check("GET", "/v0/nothing", 200, {})
