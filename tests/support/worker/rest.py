"""Sends a fixed list of requests to a Connect worker and keeps its answers, without the parts that differ per run.

The same list is sent to Apache Kafka Connect, once, to record its answers, and to a worker of ours in each test run, to
compare.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from support.eventually import eventually

KEPT_HEADERS = ("content-type", "location", "allow")
MOMENTARY = ("momentarily", "conflicting operation")
TRY_SECONDS = 300.0
_CLASSES = re.compile(r"available connectors are: .*", re.DOTALL)
_MILLISECONDS = re.compile(r'("last_modified": ?)\d+')


@dataclass(frozen=True, slots=True)
class Step:
    """One request.

    `body` is sent unchanged; `until` are the states (connector, then tasks; "..." for any tasks) of connector `of` that
    are waited for first. `seconds` gives a request up as unanswered.

    A `method` of JOIN, LEAVE or WRITE is no request: a consumer joins or leaves the group (and topic) that `path`
    names; a record, key and value as a JSON list in `body`, is written to the topic that `path` names.
    """

    name: str
    method: str
    path: str
    body: str | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    of: str = ""
    until: Sequence[str] = ()

    def plain(self) -> dict[str, Any]:
        """The step in its stored form."""
        stored: dict[str, Any] = {"name": self.name, "method": self.method, "path": self.path}
        if isinstance(self.body, bytes):
            stored["body_hex"] = self.body.hex()
        elif self.body is not None:
            stored["body"] = self.body
        if dict(self.headers) != {"Content-Type": "application/json"}:
            stored["headers"] = dict(self.headers)
        if self.until:
            stored |= {"of": self.of, "until": list(self.until)}
        return stored


def step_of(stored: Mapping[str, Any]) -> Step:
    """The step from its stored form."""
    fields = ("name", "method", "path", "body", "headers", "of", "until")
    values: dict[str, Any] = {k: stored[k] for k in fields if k in stored}
    if "body_hex" in stored:
        values["body"] = bytes.fromhex(stored["body_hex"])
    return Step(**values)


def fresh_client() -> httpx.AsyncClient:
    """A client with a connection for each request: servers close some after a malformed request."""
    return httpx.AsyncClient(timeout=300, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


@dataclass(slots=True)
class Player:
    """Sends steps and keeps the answers.

    `hidden` maps values that differ from run to run to their placeholders; `patient` repeats a request that gets a
    momentary 409, as Connect's clients have to.
    """

    url: str
    bootstrap: str
    hidden: Mapping[str, str]
    patient: bool = False
    _members: dict[str, Any] = field(default_factory=dict)

    async def play(self, client: httpx.AsyncClient, step: Step) -> dict[str, Any] | None:
        """The answer: status, headers and body, None for a step that is no request."""
        if step.method == "JOIN":
            await self._join(step.path)
            return None
        if step.method == "LEAVE":
            await self._members.pop(step.path).stop()
            return None
        if step.method == "WRITE":
            await self._write(step)
            return None
        if step.until:
            await eventually(lambda: self._states(client, step), seconds=TRY_SECONDS, what=f"{step.of} is {step.until}")
        begun = time.monotonic()
        while True:
            try:
                answer = await self._ask(client, step)
            except (httpx.RemoteProtocolError, httpx.ReadError):  # the connection was closed without an answer
                return {"status": 0}
            momentary = answer.status_code == 409 and any(word in answer.text for word in MOMENTARY)
            if not (self.patient and momentary) or time.monotonic() - begun > TRY_SECONDS:
                return self._kept(answer)
            await asyncio.sleep(0.2)

    async def close(self) -> None:
        """Makes all consumers leave."""
        for member in self._members.values():
            await member.stop()

    async def _ask(self, client: httpx.AsyncClient, step: Step) -> httpx.Response:
        # The path unchanged: a client's own escaping is not under test.
        url = httpx.URL(self.url).copy_with(raw_path=step.path.encode("ascii"))
        headers = dict(step.headers) if step.body is not None else {}
        content = self._shown(step.body)
        return await client.request(step.method, url, content=content, headers=headers)

    def _shown(self, body: str | bytes | None) -> str | bytes | None:
        if not isinstance(body, str):
            return body
        for value, word in self.hidden.items():
            body = body.replace(word, value)
        return body

    def _kept(self, answer: httpx.Response) -> dict[str, Any]:
        stored: dict[str, Any] = {"status": answer.status_code}
        headers = {k: answer.headers[k] for k in KEPT_HEADERS if k in answer.headers}
        text = _MILLISECONDS.sub(r"\g<1>0", _CLASSES.sub("available connectors are: {classes}", answer.text))
        for value, word in self.hidden.items():
            text = text.replace(value, word)
            headers = {k: v.replace(value, word) for k, v in headers.items()}
        if headers:
            stored["headers"] = headers
        try:
            stored["body"] = json.loads(text)
        except ValueError:
            if text:
                stored["text"] = "{page}" if text.startswith("<html>") else text
        message = stored["body"].get("message") if isinstance(stored.get("body"), dict) else None
        if isinstance(message, str):  # without the position at which the JSON library stopped
            stored["body"]["message"] = message.partition("\n at [Source: ")[0]
        return stored

    async def _states(self, client: httpx.AsyncClient, step: Step) -> bool:
        answer = await client.get(f"{self.url}/connectors/{step.of}/status")
        if answer.status_code != 200:
            return False
        told = answer.json()
        states = [told["connector"]["state"], *(task["state"] for task in told["tasks"])]
        return states[:1] == list(step.until[:1]) if "..." in step.until else states == list(step.until)

    async def _join(self, path: str) -> None:
        group, topic = path.split("/")
        member = AIOKafkaConsumer(topic, bootstrap_servers=self.bootstrap, group_id=group)
        await member.start()
        self._members[path] = member
        await eventually(lambda: bool(member.assignment()), seconds=TRY_SECONDS, what=f"a member of {group}")

    async def _write(self, step: Step) -> None:
        key, value = json.loads(self._shown(step.body) or "")
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap)
        await producer.start()
        try:
            await producer.send_and_wait(step.path, value.encode(), key=key.encode())
        finally:
            await producer.stop()
