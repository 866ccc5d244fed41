"""Every request of Ohara's own document on workers, in its order, each answer beside the printed one, field by field.

The document's requests are about `wk` and `bk`, its answers about `wk00` and `bk00`: here both are `wk` and `bk`.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from support.gateway.ohara.clients import ACCEPTED, OharaWorld, brokers, ohara_world
from support.places import RECORDED_FOLDER

pytestmark = pytest.mark.component
DOCUMENT = (RECORDED_FOLDER / "ohara" / "workers.md").read_text()
VERSION = "0.11.1"


class Printed(NamedTuple):
    """One section: its heading, method, path, request and answer as printed."""

    heading: str
    method: str
    path: str
    request: Any
    answer: Any


def sections() -> Iterator[Printed]:
    """The sections of the document that have a call."""
    for text in DOCUMENT.split("\n## ")[1:]:
        heading = re.sub(r"\s*\{#.*", "", text.partition("\n")[0])
        method, path = re.search(r"^\*(\w+) (/v0\S+)\*$", text, re.MULTILINE).groups()
        blocks = [orjson.loads(_ours(b)) for b in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
        request = blocks.pop(0) if "Example Request" in text else None
        plain = re.search(r"(\d+ \w+)\n\s*`{3,4}", text)
        yield Printed(heading, method, path, request, blocks[0] if blocks else plain and plain[1])


def _ours(text: str) -> str:
    text = text.replace('"wk00"', '"wk"').replace('"bk00"', '"bk"')
    return text.replace("{{< ohara-version >}}", VERSION)


def is_hex(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{25}", value) is not None


def is_port(value: Any) -> bool:
    return type(value) is int and 1024 < value <= 65535


def is_now(value: Any) -> bool:
    return type(value) is int and abs(value - time.time() * 1000) < 60_000


GENERATED: dict[str, Callable[[Any], bool]] = {
    "group.id": is_hex,
    "config.storage.topic": is_hex,
    "offset.storage.topic": is_hex,
    "status.storage.topic": is_hex,
    "clientPort": is_port,
    "jmxPort": is_port,
    "lastModified": is_now,
}
"""Fields whose printed value is only an example."""


def compare(answer: dict[str, Any], printed: dict[str, Any], *, sent: dict[str, Any]) -> None:
    """Asserts that an answer has the printed fields and no others, each as printed, or by its rule."""
    assert set(answer) == set(printed)
    for name, value in printed.items():
        if name in GENERATED and name not in sent:
            assert GENERATED[name](answer[name]), f"{name}: {answer[name]!r}"
        else:
            assert answer[name] == value, name
            assert type(answer[name]) is type(value), name


@pytest.fixture(scope="module")
async def own(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OharaWorld]:
    """A system with only the document's node and broker cluster."""
    async with ohara_world(tmp_path_factory.mktemp("transcript")) as started_world:
        await brokers(started_world.js, "bk")
        yield started_world


async def test_every_call_of_the_document_answers_as_printed(own: OharaWorld) -> None:
    create, list_, update, delete, get, start, stop, add, remove = sections()
    wire, at = own.js, {"$name": "wk", "$nodeName": "node01"}

    def path(printed: Printed) -> str:
        text = printed.path.partition("?")[0].removeprefix("/v0")
        return re.sub(r"\$\w+", lambda m: at[m[0]], text)

    fields = await wire.ok(create.method, path(create), create.request)
    compare(fields, create.answer, sent=create.request)
    assert fields["clientPort"] != fields["jmxPort"]
    hexes = [v for k, v in fields.items() if GENERATED.get(k) is is_hex]
    assert len(set(hexes)) == len(hexes) == 4

    (listed,) = await wire.ok(list_.method, path(list_))
    compare(listed, list_.answer[0], sent={})
    assert listed == fields

    updated = await wire.ok(update.method, path(update), update.request)
    compare(updated, update.answer, sent=update.request)
    assert updated["lastModified"] >= fields["lastModified"]
    assert updated == fields | update.request | {"lastModified": updated["lastModified"]}, "the chosen value is kept"

    document = await wire.ok(get.method, path(get), group="default")
    compare(document, get.answer, sent=update.request)
    assert document == updated

    assert (start.answer, stop.answer) == ("202 Accepted", "202 Accepted")
    for _ in range(2):
        answer = await wire.send(start.method, path(start), group="default")
        assert (answer.status_code, answer.text) == (202, ACCEPTED)
    running = await wire.reaches("workers", "wk", "RUNNING")
    assert running["aliveNodes"] == ["node00"]
    assert set(running) == set(document) | {"state"}

    assert (await wire.send(add.method, path(add))).status_code == 202
    both = await wire.get("workers", "wk")
    assert sorted(both["nodeNames"]) == ["node00", "node01"]

    assert remove.answer == delete.answer == "204 NoContent"
    for _ in range(2):
        assert (await wire.send(remove.method, path(remove), group="default")).status_code == 204
    assert (await wire.get("workers", "wk"))["nodeNames"] == ["node00"]

    assert (await wire.send(stop.method, path(stop), group="default", force="true")).status_code == 202
    stopped = await wire.reaches("workers", "wk", None)
    assert stopped == updated | {"lastModified": stopped["lastModified"]}
    for _ in range(2):
        assert (await wire.send(delete.method, path(delete), group="default")).status_code == 204
    assert await wire.list("workers") == []


def test_the_document_is_read_whole() -> None:
    actual_sections = list(sections())
    assert [f"{s.method} {s.path}" for s in actual_sections] == re.findall(
        r"^\*([A-Z]+ /v0\S+)\*$", DOCUMENT, re.MULTILINE
    )
    assert [s.heading for s in actual_sections if s.answer is None] == ["add a new node to a running worker cluster"]


def test_a_field_that_is_not_as_printed_is_found(tmp_path: Path) -> None:
    printed = next(sections()).answer
    for wrong in ({"xms": 1024}, {"xms": "2048"}, {"state": "RUNNING"}, {"tags": []}):
        with pytest.raises(AssertionError):
            compare({**printed, **wrong}, printed, sent=printed)
    compare(printed, printed, sent=printed)
