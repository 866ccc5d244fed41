"""The link to the state service: registration, heartbeats and reports up, assignments down.

When anything fails the whole session is dropped and a new one opened after a random back-off: no half states.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from keelman.agent.assignments import AssignmentVersions
from keelman.agent.figures import Figures
from keelman.agent.reporter import Reporter
from keelman.agent.trust.trust import StateLink
from keelman.api.node.v1.session_service_pb2 import (
    Assignments,
    Heartbeat,
    NodeSecrets,
    OpenSessionRequest,
    OpenSessionResponse,
    Registration,
)
from keelman.api.node.v1.session_service_pb2_grpc import SessionServiceStub
from keelman.model.errors import DeadlineExceeded, KeelmanError, Unavailable
from keelman.rpc.channels import addresses
from keelman.rpc.credentials import Pems
from keelman.rpc.errors import ended_call, translated, translated_stream
from keelman.rpc.times import from_duration
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline, supervise

log = get_logger()
WELCOME_SECONDS = 10.0
HEARD_SECONDS = 60.0
"""How long a report may wait to be stored while the state service answers heartbeats: to send it again in another
session would only add to what the service has to do."""
MAX_BACKOFF_SECONDS = 3.0
AWAY_SECONDS = 15.0
RENEWED = "CERTIFICATE_RENEWED"


@dataclass(slots=True)
class StateSessions:
    """Opens one session after another for as long as the agent lives."""

    state_address: str
    registration: Registration
    reporter: Reporter
    on_assignments: Callable[[Assignments], None]
    figures: Figures
    on_secrets: Callable[[NodeSecrets], None]
    link: StateLink = field(default_factory=StateLink)
    """Opens channels to the state services; by default in plain text."""
    heard: float = field(default_factory=time.monotonic)
    """The time of the last message of a state service, by the monotonic clock."""

    def is_heard(self) -> bool:
        """Returns whether a message of a state service came lately: else this node counts as offline."""
        return time.monotonic() - self.heard < AWAY_SECONDS

    async def run(self) -> None:
        """Runs until cancelled, with the state services in turn where there are several. While all are away the node
        keeps its last assignment."""
        backoff = Backoff(most=MAX_BACKOFF_SECONDS)
        for address in itertools.cycle(addresses(self.state_address)):
            session = Session(self)
            try:
                await session.run(address)
            except KeelmanError as error:
                if session.number:
                    backoff.reset()
                if error.reason == RENEWED:
                    continue
                if backoff.is_new(error.message):  # the state service may be away for hours: one line, not one a second
                    problem = "" if session.number else await self.link.problem(address, error)
                    log.warning(
                        "session_lost", state_address=address, reason=error.reason, error=problem or error.message
                    )
            await asyncio.sleep(backoff.next())


@dataclass(slots=True)
class Session:
    """One session, from its registration until anything fails. `number` is 0 until the state service's welcome."""

    of: StateSessions
    number: int = 0
    _versions: AssignmentVersions = field(default_factory=AssignmentVersions)
    _welcome: asyncio.Event = field(default_factory=asyncio.Event)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _heartbeat_seconds: float = 1.0
    _timeout_seconds: float = WELCOME_SECONDS
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)  # a stream carries one message at a time
    _call: Any = None
    _shown: Pems = field(default_factory=Pems)

    async def run(self, address: str) -> None:
        """Always ends by raising: a KeelmanError when the session was lost, RENEWED where the agent has another
        certificate by now, since a session ends with its first certificate."""
        self._shown = self.of.link.newest()
        async with self.of.link.channel(address) as channel:
            self._call = SessionServiceStub(channel).OpenSession()
            try:
                await supervise(self._read, self._beat, self._report)
            finally:
                self._call.cancel()

    async def _send(self, message: OpenSessionRequest) -> None:
        async with self._writing:
            with translated():
                try:
                    await self._call.write(message)
                except asyncio.InvalidStateError:
                    raise await ended_call(self._call, "the state service ended the session") from None

    async def _read(self) -> None:
        await self._send(OpenSessionRequest(registration=self.of.registration))
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(WELCOME_SECONDS) as silence:
                async for message in translated_stream(self._call):
                    self._take(message)
                    silence.reschedule(loop.time() + self._timeout_seconds)
        except TimeoutError:
            raise DeadlineExceeded(f"no message for {self._timeout_seconds:g} s") from None
        raise Unavailable("the state service ended the session")

    def _take(self, message: OpenSessionResponse) -> None:
        self.of.heard = time.monotonic()
        match message.WhichOneof("message"):
            case "welcome":
                self.number = message.welcome.session
                self._heartbeat_seconds = from_duration(message.welcome.heartbeat_interval) or self._heartbeat_seconds
                self._timeout_seconds = from_duration(message.welcome.session_timeout) or self._timeout_seconds
                self._welcome.set()
                log.info("session_open", session=self.number)
            case "heartbeat_reply":
                self._heartbeat_seconds = (
                    from_duration(message.heartbeat_reply.heartbeat_interval) or self._heartbeat_seconds
                )
            case "assignments":
                self._versions.follow(message.assignments)
                self.of.on_assignments(message.assignments)
            case "secrets":
                self.of.on_secrets(message.secrets)
            case "report_received":
                if self.of.reporter.acknowledge(message.report_received.number):
                    self._heard.set()

    async def _beat(self) -> None:
        await self._welcome.wait()
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            if self.of.link.newest() != self._shown:
                raise Unavailable("the certificate was renewed: another session is opened", reason=RENEWED)
            await self._send(OpenSessionRequest(heartbeat=Heartbeat(figures=self.of.figures.take())))

    async def _report(self) -> None:
        await self._welcome.wait()
        self.of.reporter.begin()
        while True:
            report = await self.of.reporter.next()
            self._heard.clear()
            await self._send(OpenSessionRequest(report=report))
            async with deadline(HEARD_SECONDS, DeadlineExceeded(f"report {report.number} was not acknowledged")):
                await self._heard.wait()
