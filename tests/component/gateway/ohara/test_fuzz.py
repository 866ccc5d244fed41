"""Random requests, legal and not, made from the OpenAPI document: every answer is a documented one.

`make test` tries one short round, `make faults` KEELMAN_FUZZ_ROUNDS rounds, each with a seed and a system of its own.
"""

from __future__ import annotations

import asyncio
import copy
import os
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

from support.gateway.ohara.clients import OharaWorld, brokers, judge_parts, ohara_world
from support.gateway.ohara.schemas import Schemas

pytestmark = pytest.mark.component
ROUNDS = int(os.environ.get("KEELMAN_FUZZ_ROUNDS", "1"))
CASES = int(os.environ.get("KEELMAN_FUZZ_CASES", "500"))
"""The cases of a round."""
NAMES = ("a", "b", "bk", "wk", ".")
HOSTS = ("node00", "node01", "nowhere")
CLASS = "connector.class"
NOT_SENT = {"/v0/openapi.json"}


def near_what_there_is(document: dict[str, Any]) -> dict[str, Any]:
    """The document with names that often are those of existing objects."""
    near = copy.deepcopy(document)
    schemas = near["components"]["schemas"]
    word: dict[str, Any] = {"anyOf": [{"enum": list(NAMES)}, *schemas["SentKey"]["anyOf"][1:]]}
    host: dict[str, Any] = {"enum": list(HOSTS)}
    fields = {"name": word, "group": {"enum": ["default", "a"]}}
    key = {"type": "object", "properties": fields, "required": ["name"], "additionalProperties": False}
    schemas["SentKey"] = {"anyOf": [{"enum": list(NAMES)}, key]}
    for name, schema in schemas.items():
        if name.endswith(("Creation", "Change")):
            properties = schema["properties"]
            properties |= {k: v for k, v in fields.items() if k in properties}
            if "nodeNames" in properties:
                properties["nodeNames"] = {"type": "array", "items": host, "minItems": 1}
            if "hostname" in properties:
                properties["hostname"] = host
    for path, calls in near["paths"].items():
        is_verb = path.count("/") == 4 and "put" in calls
        for call in calls.values():
            for parameter in call.get("parameters", ()):
                present = {"name": word, "group": fields["group"], "hostname": host, "nodeName": host}
                present |= {"name": {"enum": ["bk", "wk", "a"]}, "group": {"enum": ["default"]}} if is_verb else {}
                parameter["schema"] = present.get(parameter["name"], parameter["schema"])
    return near


class Tries:
    """Sends cases and keeps the faults of their answers."""

    def __init__(self, http: str, document: dict[str, Any]) -> None:
        self.http = http
        self.statuses: Counter[int] = Counter()
        self.wrong: dict[tuple[str, str], str] = {}
        self._schemas = Schemas(document)
        read = schemathesis.openapi.from_dict(near_what_there_is(document))
        self._operations = [all_operation.ok() for all_operation in read.get_all_operations()]
        self._session = requests.Session()

    def run(self, cases: int, number: int) -> None:
        """Tries this many cases."""
        modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        operations = [o for o in self._operations if o.path not in NOT_SENT]
        strategies = [o.as_strategy(generation_mode=mode) for o in operations for mode in modes]

        @seed(number)
        @settings(
            max_examples=cases,
            deadline=None,
            database=None,
            derandomize=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.one_of(strategies))
        def one(case: Any) -> None:
            self._try(case)

        one()

    def _try(self, case: Any) -> None:
        answer = case.call(base_url=self.http, session=self._session, timeout=300)
        self.statuses[answer.status_code] += 1
        path = urlsplit(answer.request.url).path
        media = next(iter(answer.headers.get("content-type", [""])), "")
        about = f"{answer.status_code} {answer.content[:800]!r}"
        try:
            judge_parts(answer.request.method, path, answer.status_code, media, answer.content, about, self._schemas)
        except (AssertionError, ValueError) as error:
            what = (case.operation.label, f"{answer.status_code} {str(error)[:60]}")
            self.wrong.setdefault(what, f"{case.as_curl_command()}\n{error}")


async def filled(world: OharaWorld) -> None:
    """Creates the objects that the cases are about."""
    await brokers(world.js, "bk")
    own = {"nodeNames": ["node00"], "brokerClusterKey": "bk"}
    for name in ("wk", "a"):
        await world.js.create("workers", name=name, **own)
    for name in NAMES:
        await world.js.create("objects", name=name)
        await world.js.create("volumes", name=name, nodeNames=["node00"], path="/data")
        await world.js.create("pipelines", name=name, endpoints=[{"name": name, "kind": "topic"}])
        await world.js.create("topics", name=name, brokerClusterKey="bk")
        await world.js.create("connectors", name=name, workerClusterKey="wk", topicKeys=[name], **{CLASS: "a.B"})
    await world.js.act("workers", "wk", "start")
    await world.js.reaches("workers", "wk", "RUNNING")


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
async def test_every_answer_is_a_documented_one(tmp_path: Path, number: int) -> None:
    async with ohara_world(tmp_path, {"node00": "127.0.0.1", "node01": "127.0.0.2"}) as world:
        await filled(world)
        tries = Tries(world.system.http, await world.js.ok("GET", "/openapi.json"))
        await asyncio.to_thread(tries.run, CASES, number)
        assert not tries.wrong, "\n\n".join(list(tries.wrong.values())[:20])
        assert {200, 202, 204, 400, 500} <= set(tries.statuses), tries.statuses
        assert sum(tries.statuses.values()) >= CASES
