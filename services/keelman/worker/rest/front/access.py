"""Answers cross-origin requests and adds configured response headers: a layer around a worker's REST application.

The answers are those of Connect 4.3's Jetty 12 (its CrossOriginHandler and HeaderFilter):
tests/recorded/rest/access.json.
"""

from __future__ import annotations

import email.utils
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keelman.connect.java.bounded_match import SlowPattern
from keelman.workers.properties.access import HeaderRule, RestAccess

PREFLIGHT_SECONDS = 60
ALLOWED_HEADERS = "Content-Type"


def with_access(access: RestAccess, app: ASGIApp) -> ASGIApp:
    """Returns the application with the configured headers on its answers."""
    if access.origins is None and not access.headers:
        return app

    async def layered(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                _mark(access, scope["method"], headers, MutableHeaders(scope=message))
            await send(message)

        await app(scope, receive, answered)

    return layered


def _mark(access: RestAccess, method: str, headers: Headers, answer: MutableHeaders) -> None:
    """Puts the headers on one answer."""
    configured = MutableHeaders()
    for rule in access.headers:
        _apply(rule, configured)
    for name, value in [(n, v) for n, v in configured.items() if n not in answer]:  # the application's own headers win
        answer.append(name, value)
    if access.origins is None:
        return
    answer.append("Vary", "Origin")
    origin = headers.get("origin")
    if origin is None or not _allows(access, origin):
        return
    answer["Access-Control-Allow-Origin"] = origin
    if method == "OPTIONS" and "access-control-request-method" in headers:
        answer["Access-Control-Allow-Methods"] = ",".join(access.methods)
        answer["Access-Control-Allow-Headers"] = ALLOWED_HEADERS
        answer["Access-Control-Max-Age"] = str(PREFLIGHT_SECONDS)


def _apply(rule: HeaderRule, headers: MutableHeaders) -> None:
    value = email.utils.formatdate(time.time() + int(rule.value) / 1000, usegmt=True) if rule.date else rule.value
    if rule.add:
        headers.append(rule.name, value)
    else:
        headers[rule.name] = value


def _allows(access: RestAccess, origins: str) -> bool:
    patterns = [origin.strip() for origin in origins.split(" ") if origin.strip()]
    try:
        return not access.origins or any(p.matches(origin) for origin in patterns for p in access.origins)
    except SlowPattern:
        return False
