"""A worker of ours answers a long list of requests as Apache Kafka Connect has answered them (tests/recorded)."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import NewTopic

from keelman.kafka.clients import admin_client
from support.places import RECORDED_FOLDER
from support.worker.processes import LinkSide, WorkerProcess, workers
from support.worker.rest import Player, fresh_client, step_of

pytestmark = pytest.mark.component
RECORDED = json.loads((RECORDED_FOLDER / "rest" / "rest.json").read_text())
GROUPS = {"main": "rest-recorded", "tracking off": "rest-recorded-1", "reset off": "rest-recorded-2"}

# Every intended difference: the part of the answer that differs, the reason, and the names of the steps.
TYPE, MESSAGE, PAGE, TASKS, ANSWER = "content-type", "message", "page", "tasks", "answer"
ACCEPTED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        TYPE,
        "Connect's servlet sends the JSON of its own errors without a Content-Type; ours says what it is",
        (
            *("unknown path", "unknown path below a connector", "removed path", "path in capitals"),
            *("POST on /", "DELETE on /", "PUT on /connectors", "DELETE on /connectors", "PATCH on /connectors"),
            *("POST on /connectors/nope", "PUT on /connectors/nope", "DELETE on /connectors/nope/config"),
            *("POST on /connectors/nope/config", "PUT on /connectors/nope/restart", "POST on /connectors/nope/pause"),
            *("POST on /connectors/nope/offsets", "GET on /connectors/nope/restart"),
            *("GET on /connectors/nope/tasks/0/restart", "GET on /connectors/nope/topics/reset"),
            *("POST on /connector-plugins", "GET on /connector-plugins/FileStreamSource/config/validate"),
            *("DELETE on /admin/loggers/root", "TRACE on /connectors", "PROPFIND on /connectors"),
            *("answer as text wanted", "create: as text/plain", "create: as application/x-www-form-urlencoded"),
            *("create: as application/xml", "create: as application/octet-stream"),
            *("create: as application/vnd.acme+json", "create: as text/json", "create: answer as text wanted"),
            *("update: as text", "patch: as text", "pause with a body", "alter: as text", "level: slash in a name"),
            "level: as text/plain",
        ),
    ),
    (
        PAGE,
        "Connect's HTTP server refuses these with a page of HTML; ours is JSON, under the same status",
        (
            *("two slashes", "unknown: name %00", "unknown: status of %00", "unknown: name %0A"),
            *("unknown: status of %0A", "unknown: name %", "unknown: status of %", "unknown: name %zz"),
            *("unknown: status of %zz", "unknown: name %2e%2e", "unknown: status of %2e%2e"),
        ),
    ),
    (ANSWER, "a type that is none is refused as any other wrong type, 415 for 400", ("create: as nonsense",)),
    (
        ANSWER,
        "Connect lets connectors be created whose names its HTTP server then refuses in paths; ours can be asked for",
        (
            *("unknown: name a%2Fb", "unknown: status of a%2Fb", "unknown: name a%25b", "unknown: status of a%25b"),
            *("unknown: name a%5Cb", "unknown: status of a%5Cb", "create odd%2F%C3%A9%20%25"),
            *("read odd%2F%C3%A9%20%25", "config of odd%2F%C3%A9%20%25", "put odd%2F%C3%A9%20%25"),
            *("delete odd%2F%C3%A9%20%25", "list at the end"),
        ),
    ),
    (
        MESSAGE,
        "the message is that of a null pointer in Java; ours says that the body, or what of it, is missing",
        (
            *("create: empty", "create: blank", "create: null", "create: nothing in it", "create: no config"),
            *("create: config null", "create: empty as nothing", "update: empty", "update: null", "patch: empty"),
            *("patch: null", "alter: empty", "alter: null", "alter: null in the list", "level: empty", "level: null"),
        ),
    ),
    (
        MESSAGE,
        "the message of Java's JSON library for what is no JSON; ours says what, and where",
        (
            *("create: broken", "create: trailing word", "create: trailing comma", "create: comment"),
            *("create: single quotes", "create: bare word", "create: NaN", "create: raw control character"),
            *("create: bad escape", "create: unfinished text", "create: unfinished word", "create: leading zero"),
            *("create: leading plus", "create: no colon", "create: not UTF-8", "create: deep", "update: broken"),
            *("patch: broken", "alter: broken", "tasks: broken, unsigned", "tasks: as text, unsigned"),
            "level: broken",
        ),
    ),
    (
        ANSWER,
        "Connect lets a patch give the configuration another connector's name, and refuses each update after that",
        ("patch: other name",),
    ),
    (
        TASKS,
        "Connect's task was still on its way from the restart before, and its connector too, which has no version then",
        (
            *("restart ?onlyFailed=true", "restart ?includeTasks=true&onlyFailed=true"),
            *(
                "restart ?includeTasks=true&includeTasks=false",
                "restart ?includeTasks=true",
                "restart ?includeTasks=TRUE",
            ),
        ),
    ),
)
IGNORED = {name: part for part, _, names in ACCEPTED for name in names}
MOMENTARY = {name for part, _, names in ACCEPTED if part == TASKS for name in names}


def rest_of(answer: Any, part: str | None) -> Any:
    """The answer without the parts that may differ."""
    if part is None or answer is None:
        return answer
    if part == ANSWER:
        return None
    if part == PAGE:
        return answer["status"]
    left = json.loads(json.dumps(answer))
    if part == TYPE:
        left.get("headers", {}).pop("content-type", None)
        left["headers"] = left.get("headers", {})
    else:
        left["body"].pop(part, None)
        if part == TASKS:
            left["body"]["connector"].pop("version")
    return left


@pytest.mark.parametrize("section", GROUPS)
async def test_answers_are_connects(section: str, bootstrap: str, link: tuple[LinkSide, str], tmp_path: Path) -> None:
    recorded = RECORDED[section]
    worker = WorkerProcess(tmp_path, bootstrap, GROUPS[section], link[1], recorded["properties"])
    if section == "main":
        async with admin_client({"bootstrap.servers": bootstrap}, client_id="rest") as admin:
            await admin.create_topics([NewTopic("rest-lines", 2, 1)])
    wrong: list[str] = []
    equal_after_all: set[str] = set()
    async with workers(worker), fresh_client() as client:
        root = (await worker.ask("GET", "/")).json()
        hidden = {worker.id: "{worker}", bootstrap: "{broker}", root["commit"]: "{commit}"}
        player = Player(f"http://{worker.id}", bootstrap, hidden | {root["kafka_cluster_id"]: "{cluster}"})
        try:
            for stored in recorded["steps"]:
                name, expected_stored = stored["name"], stored.get("answer")
                got = await player.play(client, step_of(stored))
                if rest_of(got, IGNORED.get(name)) != rest_of(expected_stored, IGNORED.get(name)):
                    wrong.append(f"{name}\n  Connect: {expected_stored}\n  ours:    {got}")
                if name in IGNORED and got == expected_stored:
                    equal_after_all.add(name)
        finally:
            await player.close()
    assert not wrong, "\n".join(wrong)
    assert equal_after_all <= MOMENTARY, "no longer different: strike them from the table"


def test_the_table_names_steps_that_there_are() -> None:
    steps = [step["name"] for section in RECORDED.values() for step in section["steps"]]
    assert len(steps) == len(set(steps)), "a name belongs to one step"
    assert set(IGNORED) <= set(steps)
    assert len(steps) - len(IGNORED) >= 300, "by far the most are equal to the letter"
