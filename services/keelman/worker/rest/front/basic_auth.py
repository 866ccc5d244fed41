"""Requires passwords around a worker's REST application, as Connect's REST extension for basic authentication does."""

from __future__ import annotations

import base64
import binascii
import hmac
import re

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from keelman.worker.rest.front.paths import exists
from keelman.workers.properties.basic_auth import ENTRY, BasicAuth

REFUSED = "User cannot access the resource."
# Requests between workers are signed instead; the forms are Connect's.
INTERNAL = (
    ("POST", re.compile(r"/?connectors/([^/]+)/tasks/?")),
    ("PUT", re.compile(r"/?connectors/[^/]+/fence/?")),
)


def guarded(auth: BasicAuth, routed: Starlette) -> ASGIApp:
    """Returns the application for these users only. Paths and methods that do not exist get their own answers, as
    there."""

    async def for_users(scope: Scope, receive: Receive, send: Send) -> None:
        if not _allows(auth, scope) and exists(routed, scope):
            headers = {"WWW-Authenticate": f'Basic realm="{ENTRY}"'}
            answer = Response(REFUSED, 401, headers, media_type="application/json")
            await answer(scope, receive, send)
        else:
            await routed(scope, receive, send)

    return for_users


def _allows(auth: BasicAuth, scope: Scope) -> bool:
    """Returns whether the request is a user's, or internal."""
    path, method = scope["path"], scope["method"]
    if any(method == legal_method and form.fullmatch(path) for legal_method, form in INTERNAL):
        return True
    scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        name, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return False
    matches = hmac.compare_digest(auth.users.get(name, "").encode(), password.encode())
    return bool(colon) and name in auth.users and matches
