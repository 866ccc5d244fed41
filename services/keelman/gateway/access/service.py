"""Puts the guards before the gateway's servers: the only wiring of this package."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from starlette.types import ASGIApp

from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.api.event.v1.audit_record_service_pb2 import RecordAuditEventsRequest
from keelman.gateway.access.audit import Audit, AuditedHttp, AuditedRpcs
from keelman.gateway.access.audit_queue import AuditQueue
from keelman.gateway.access.callers import CLOSED, Admission, Callers
from keelman.gateway.access.failures import Failures
from keelman.gateway.access.guard import HttpGuard, RpcGuard
from keelman.gateway.access.lookups import Lookups
from keelman.gateway.access.turns import Turns
from keelman.gateway.calls import Calls
from keelman.gateway.settings import Settings
from keelman.model.errors import InvalidArgument, KeelmanError, Unauthenticated
from keelman.rpc.channels import Channel
from keelman.rpc.credentials import Newest, RootsFile, Tls
from keelman.rpc.guarded import Guarded
from keelman.rpc.handlers import Interceptor
from keelman.rpc.server import Health, RpcService, serve
from keelman.runtime.http.server import serve_http
from keelman.runtime.tls.server_contexts import renewed_context


class Access:
    """The access control of the gateway's servers, by settings that cannot change, and by files that can."""

    def __init__(self, settings: Settings, tls: Tls | Newest | None) -> None:
        """`tls` has the certificates of the gateway's server. Raises InvalidArgument for illegal settings and files."""
        self.callers = Callers(settings)
        self._settings = settings
        file = settings.audit_file
        self._audit = Audit(None if file is None else file.expanduser().absolute(), AuditQueue(), settings.own_name)
        self._failures = Failures(settings.free_failures)
        self.turns = Turns()
        self._admission = self.callers.admission(settings.host)
        self._http_admission = self.callers.admission(settings.http_host)
        self._newest = tls.newest("gateway") if isinstance(tls, Tls) else tls
        for name in ("http_tls", "client_ca"):
            if getattr(settings, name) and self._newest is None:
                legal = f"a PEM file, or trust = installation, as {name} is set"
                raise InvalidArgument.of("gateway.tls_certificate", "", legal)
        if (settings.client_ca is None) != (settings.client_port == 0):
            missing = "client_ca" if settings.client_ca is None else "client_port"
            raise InvalidArgument.of(f"gateway.{missing}", "", "set: client_port and client_ca go together")

    @contextlib.asynccontextmanager
    async def running(self, state: Channel) -> AsyncIterator[None]:
        """Sends the audit's events to the state service within the block, reads the keys of issuers of tokens, and
        notes the last uses of callers.
        `state`: a channel to the state service."""
        calls = Calls(state)

        async def record(events: Sequence[AuditEvent]) -> None:
            await calls.ask(RecordAuditEventsRequest(audit_events=events))

        callers = self.callers
        async with callers.reading_keys(), callers.last_uses.writing(), self._audit.queue.sending(record):
            yield

    def interceptors(self, state: Channel, *, certified: bool = False) -> Sequence[Interceptor]:
        """Returns the interceptors that record and judge RPCs; none judges for open access. `state`: a channel to the
        state service. `certified`: each caller has shown a certificate of client_ca, so that none is a stranger."""
        recorded = AuditedRpcs(self._audit, self.callers, self._admission)
        if self._admission is Admission.OPEN:
            return [recorded]
        guard = RpcGuard(self.callers, self._admission, Lookups(state))
        return [
            recorded,
            Guarded(guard.admit, None if certified else guard.screen, self._failures.delay, self.turns.take),
        ]

    async def _refused(self, error: KeelmanError, address: str) -> None:
        """Returns when a refusal may be answered; one of a known caller at once."""
        if isinstance(error, Unauthenticated) or error.reason == CLOSED:
            await self._failures.delay(error, address)
            await self.turns.take()

    def serve_http(self, app: ASGIApp) -> AbstractAsyncContextManager[int]:
        """Returns the HTTP server, with a guard before the application."""
        settings = self._settings
        guarded: ASGIApp = HttpGuard(app, self.callers, self._http_admission, self._refused)
        return serve_http(
            AuditedHttp(guarded, self._audit, self.callers, self._http_admission),
            host=settings.http_host,
            port=settings.http_port,
            label="gateway.http",
            tls=self._http_context() if settings.http_tls else None,
            grace_seconds=settings.grace_seconds / 2,
        )

    @contextlib.asynccontextmanager
    async def serve_certified(self, services: Sequence[RpcService], state: Channel) -> AsyncIterator[list[Health]]:
        """Runs a second gRPC server, only for clients with a certificate of client_ca, if client_ca is set: one server
        cannot require certificates of some clients only. Yields its health."""
        settings, newest = self._settings, self._newest
        if settings.client_ca is None or newest is None:
            yield []
            return
        roots = RootsFile("gateway.client_ca", settings.client_ca)
        async with serve(
            *services,
            host=settings.host,
            port=settings.client_port,
            tls=lambda: replace(newest(), roots=roots.newest()),
            trust=settings.trust,
            label="gateway.client",
            interceptors=self.interceptors(state, certified=True),
        ) as health:
            await health.ready()
            yield [health]

    def _http_context(self) -> ssl.SSLContext:
        newest = self._newest
        assert newest is not None

        def pair() -> tuple[bytes, bytes]:
            pems = newest()
            return pems.chain, pems.key

        return renewed_context(pair)

    @property
    def said(self) -> dict[str, str]:
        """Fields for the log: the URL of HTTP, and the admission of each server."""
        settings = self._settings
        url = f"{'https' if settings.http_tls else 'http'}://{settings.http_host}:{settings.http_port}"
        return {"http": url, "access": self._admission.value, "http_access": self._http_admission.value}
