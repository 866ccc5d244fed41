"""Builds the API: the only wiring of this room."""

from __future__ import annotations

from keelman.gateway.ohara.control import Control
from keelman.gateway.ohara.openapi import document as openapi
from keelman.gateway.ohara.resource import Resource
from keelman.gateway.ohara.routes import Endpoint, OharaApi
from keelman.gateway.settings import Settings


def ohara_api(control: Control, settings: Settings) -> OharaApi:
    """The ASGI application for /v0."""
    resources: dict[str, Resource] = {}
    endpoints: list[Endpoint] = [*openapi.endpoints()]
    return OharaApi(resources, endpoints, max_body_bytes=settings.max_body_bytes)
