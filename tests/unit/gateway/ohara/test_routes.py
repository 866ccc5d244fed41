"""The route of each call, unknown calls, and the form of each answer; with a kind of object in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from keelman.gateway.ohara.routes import Endpoint, OharaApi
from keelman.gateway.ohara.wire.call import ACCEPTED, OharaCall, ok
from keelman.gateway.ohara.wire.errors import data_check, no_such
from keelman.gateway.ohara.wire.keys import ObjectKey
from keelman.gateway.ohara.wire.resource import Json, OharaResource
from keelman.gateway.ohara.wire.values import Settings
from keelman.model.errors import InvalidArgument, NotFound, Unavailable

LIMIT = 4096


class Things(OharaResource):
    def __init__(self) -> None:
        self.kept: dict[ObjectKey, Settings] = {}
        self.asked: list[tuple[Any, ...]] = []

    async def list(self) -> Sequence[Json]:
        return [self.kept[key] for key in sorted(self.kept)]

    async def get(self, key: ObjectKey) -> Json:
        if key not in self.kept:
            raise no_such(f"{key} does not exist")
        return self.kept[key]

    async def create(self, settings: Settings) -> Json:
        return await self.put(self.key("default", settings["name"]), settings)

    async def put(self, key: ObjectKey, settings: Settings) -> Json:
        self.kept[key] = {**key.json, **settings, "absent": None}
        return self.kept[key]

    async def delete(self, key: ObjectKey) -> None:
        self.kept.pop(key, None)

    async def act(self, key: ObjectKey, verb: str, call: OharaCall) -> None:
        match verb:
            case "fail":
                raise data_check("it cannot")
            case "away":
                raise Unavailable("state is away")
            case "gone":
                raise NotFound("no such thing")
            case "bad":
                raise InvalidArgument.of("x", 1, "2")
            case "broken":
                raise ZeroDivisionError
        self.asked.append((key, verb, call.parameter("force")))


@pytest.fixture
def things() -> Things:
    return Things()


@pytest.fixture
async def web(things: Things) -> Any:
    async def echo(call: OharaCall) -> Any:
        return ok({"target": call.target, **call.variables})

    api = OharaApi({"things": things}, [Endpoint("GET", "inspect/things/{name}", echo)], max_body_bytes=LIMIT)

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await api(scope | {"raw_path": scope["raw_path"].partition(b"?")[0]}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(mounted), base_url="http://x/v0") as client:
        yield client


async def test_the_calls_of_an_object(web: httpx.AsyncClient, things: Things) -> None:
    response = await web.post("/things", json={"name": "a", "none": None})
    assert (response.status_code, response.json()) == (200, {"group": "default", "name": "a"})
    assert response.headers["content-type"] == "application/json"
    assert (await web.get("/things/a")).json() == response.json()
    assert (await web.put("/things/b?group=g", json={"x": 1})).json() == {"group": "g", "name": "b", "x": 1}
    assert [entry["name"] for entry in (await web.get("/things")).json()] == ["a", "b"]
    assert [entry["name"] for entry in (await web.get("/things?group=g&x=1")).json()] == ["b"]
    gone = await web.delete("/things/a")
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await web.delete("/things/a")).status_code == 204


async def test_verbs_are_accepted_with_a_text(web: httpx.AsyncClient, things: Things) -> None:
    answer = await web.put("/things/.a./start?group=g&force=true")
    assert (answer.status_code, answer.text) == (202, ACCEPTED)
    assert answer.headers["content-type"].startswith("text/plain")
    assert things.asked == [(ObjectKey("g", ".a."), "start", "true")]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "abc"),
        ("GET", "things/a/b"),
        ("GET", "things/"),
        ("GET", "things//start"),
        ("GET", "things/a/b/c"),
        ("PATCH", "things/a"),
        ("POST", "things/a"),
        ("DELETE", "things"),
        ("DELETE", "things/a/node"),
        ("PUT", "things"),
        ("OPTIONS", "things"),
        ("GET", "inspect/things"),
        ("POST", "inspect/things/a"),
    ],
)
async def test_what_there_is_not_is_404_in_oharas_form(web: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await web.request(method, f"/{path}")
    assert answer.status_code == 404
    assert answer.json() == {
        "code": f"Unsupported API: v0/{path}",
        "message": f"please see link to find the available APIs. input url:v0/{path}",
        "stack": "N/A",
        "apiUrl": "https://oharastream.github.io/en/docs/0.11/rest-api/",
    }


@pytest.mark.parametrize(
    ("verb", "status", "code", "message"),
    [
        ("fail", 500, "oharastream.ohara.configurator.route.DataCheckException", "it cannot"),
        ("away", 500, "java.util.concurrent.TimeoutException", "state is away"),
        ("gone", 400, "java.util.NoSuchElementException", "no such thing"),
        ("bad", 400, "java.lang.IllegalArgumentException", "x: 1 is not legal: 2"),
        ("broken", 500, "java.lang.RuntimeException", "ZeroDivisionError: see the gateway's log"),
    ],
)
async def test_errors_have_oharas_form(web: httpx.AsyncClient, verb: str, status: int, code: str, message: str) -> None:
    answer = await web.put(f"/things/a/{verb}")
    assert answer.status_code == status
    assert answer.json() == {"code": code, "message": message, "stack": "N/A"}


async def test_a_missing_object_is_400(web: httpx.AsyncClient) -> None:
    answer = await web.get("/things/a")
    assert (answer.status_code, answer.json()["code"]) == (400, "java.util.NoSuchElementException")


@pytest.mark.parametrize("name", ["A", "a%2Fb", "a%00", "%ff", "a%0a", "a" * 26, "a+b", "%252e"])
async def test_names_that_cannot_be_are_400(web: httpx.AsyncClient, name: str) -> None:
    answer = await web.get(f"/things/{name}")
    assert (answer.status_code, answer.json()["code"]) == (400, "spray.json.DeserializationException")


PARSING = "spray.json.JsonParser$ParsingException"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", PARSING),
        (b"  ", PARSING),
        (b"{", PARSING),
        (b"{}x", PARSING),
        (b'{"name": NaN}', PARSING),
        (b'{"name": Infinity}', PARSING),
        (b'{"name": 1e999}', PARSING),
        (b'{"name": "\xff"}', PARSING),
        (b'{"name": "\\ud800"}', PARSING),
        ('{"name": "a"}'.encode("utf-16"), PARSING),
        (b'{"x": ' + b"[" * 21 + b"]" * 21 + b"}", PARSING),
        (b'{"x": ' + b"[" * 2000, PARSING),
        (b'{"x": ' + b"1" * 2000 + b"}", PARSING),
        (b'{"": 1}', PARSING),
        (b'"a"', "spray.json.DeserializationException"),
        (b"null", "spray.json.DeserializationException"),
        (b'{"name": ""}', "spray.json.DeserializationException"),
        (b'{"x": "' + b"a" * LIMIT + b'"}', "java.lang.IllegalArgumentException"),
    ],
)
async def test_bodies_that_cannot_be_are_400(web: httpx.AsyncClient, body: bytes, code: str) -> None:
    answer = await web.post("/things", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, code)


async def test_of_a_key_that_is_there_twice_the_last_one_counts(web: httpx.AsyncClient) -> None:
    answer = await web.post("/things", content=b'{"name":"a","x":1,"x":2}')
    assert answer.json()["x"] == 2


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
async def test_another_content_type_is_404(web: httpx.AsyncClient, kind: str) -> None:
    answer = await web.post("/things", content=b'{"name":"a"}', headers={"content-type": kind})
    assert (answer.status_code, answer.json()["code"]) == (404, "Unsupported API: v0/things")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_json_is_json_however_it_is_written(web: httpx.AsyncClient, kind: str) -> None:
    answer = await web.post("/things", content=b'{"name":"a"}', headers={"content-type": kind})
    assert answer.status_code == 200


async def test_endpoints_have_variables(web: httpx.AsyncClient) -> None:
    answer = await web.get("/inspect/things/a%20b")
    assert answer.json() == {"target": "v0/inspect/things/a%20b", "name": "a b"}


def test_what_is_more_than_64_bits_or_half_a_character_is_answered_too() -> None:
    assert ok({"a": 10**30, "none": None}).body == b'{"a":1000000000000000000000000000000}'
    assert ok({"a": "\ud800"}).body == b'{"a":"?"}'
    assert ok({"a": 1, "b": "ä"}).body == '{"a":1,"b":"ä"}'.encode()
