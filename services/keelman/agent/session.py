"""The link to the state service: registration, heartbeats and reports up, assignments down.

When anything fails the whole session is dropped and a new one opened after a random back-off: no half states.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from keelman.agent.assignments import Versions
from keelman.agent.figures import Figures
from keelman.agent.reporter import Reporter
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
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated, translated_stream
from keelman.rpc.times import from_duration
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import deadline, supervise

log = get_logger()
WELCOME_SECONDS = 10.0
HEARD_SECONDS = 10.0
MAX_BACKOFF_SECONDS = 3.0


class Sessions:
    """Opens one session after another for as long as the agent lives."""

    def __init__(
        self,
        state_address: str,
        registration: Registration,
        reporter: Reporter,
        on_assignments: Callable[[Assignments], None],
        figures: Figures,
        *,
        on_secrets: Callable[[NodeSecrets], None] = lambda _: None,
        certificates: bytes | None = None,
    ) -> None:
        self._state_address = state_address
        self._certificates = certificates
        self._on_secrets = on_secrets
        self._figures = figures
        self._registration = registration
        self._reporter = reporter
        self._on_assignments = on_assignments

    async def run(self) -> None:
        """Runs until cancelled. While the state service is away the node goes on by what it was last assigned."""
        backoff = Backoff(most=MAX_BACKOFF_SECONDS)
        logged = ""
        while True:
            session = Session(self._registration, self._reporter, self._on_assignments, self._figures, self._on_secrets)
            try:
                await session.run(self._state_address, self._certificates)
            except KeelmanError as error:
                if session.number:
                    backoff.reset()
                    logged = ""
                if error.message != logged:  # the state service may be away for hours: one line, not one a second
                    log.warning("session_lost", state_address=self._state_address, error=error.message)
                logged = error.message
            await asyncio.sleep(backoff.next())


class Session:
    """One session, from its registration until anything fails. `number` is 0 until the state service said welcome."""

    def __init__(
        self,
        registration: Registration,
        reporter: Reporter,
        on_assignments: Callable[[Assignments], None],
        figures: Figures,
        on_secrets: Callable[[NodeSecrets], None] = lambda _: None,
    ) -> None:
        self.number = 0
        self._on_secrets = on_secrets
        self._figures = figures
        self._registration = registration
        self._reporter = reporter
        self._on_assignments = on_assignments
        self._versions = Versions()
        self._welcome = asyncio.Event()
        self._heard = asyncio.Event()
        self._heartbeat_seconds = 1.0
        self._timeout_seconds = WELCOME_SECONDS
        self._writing = asyncio.Lock()  # a stream carries one message at a time
        self._call: Any = None

    async def run(self, address: str, certificates: bytes | None = None) -> None:
        """Always ends by raising: a KeelmanError when the session was lost. With `certificates` it speaks TLS."""
        async with channel(address, root_certificates=certificates) as made:
            self._call = SessionServiceStub(made).OpenSession()
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
                    raise Unavailable("the state service ended the session") from None

    async def _read(self) -> None:
        await self._send(OpenSessionRequest(registration=self._registration))
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(WELCOME_SECONDS) as silence:
                async for message in translated_stream(self._call):
                    self._take(message)
                    silence.reschedule(loop.time() + self._timeout_seconds)
        except TimeoutError:
            raise DeadlineExceeded(f"nothing heard for {self._timeout_seconds:g} s") from None
        raise Unavailable("the state service ended the session")

    def _take(self, message: OpenSessionResponse) -> None:
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
                self._on_assignments(message.assignments)
            case "secrets":
                self._on_secrets(message.secrets)
            case "report_received":
                if self._reporter.acknowledge(message.report_received.number):
                    self._heard.set()

    async def _beat(self) -> None:
        await self._welcome.wait()
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            await self._send(OpenSessionRequest(heartbeat=Heartbeat(figures=self._figures.take())))

    async def _report(self) -> None:
        await self._welcome.wait()
        self._reporter.begin()
        while True:
            report = await self._reporter.next()
            self._heard.clear()
            await self._send(OpenSessionRequest(report=report))
            async with deadline(HEARD_SECONDS, DeadlineExceeded(f"report {report.number} was not acknowledged")):
                await self._heard.wait()
