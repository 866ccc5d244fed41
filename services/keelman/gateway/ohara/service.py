"""Builds the API: the only wiring of this room."""

from __future__ import annotations

from keelman.gateway.ohara.control import Control
from keelman.gateway.ohara.documents.clusters import Shabondis, Streams
from keelman.gateway.ohara.documents.objects import Objects
from keelman.gateway.ohara.documents.pipelines import Pipelines
from keelman.gateway.ohara.documents.volumes import Volumes
from keelman.gateway.ohara.kinds import Kinds
from keelman.gateway.ohara.openapi import document as openapi
from keelman.gateway.ohara.resource import Resource
from keelman.gateway.ohara.routes import Endpoint, OharaApi
from keelman.gateway.settings import Settings


def ohara_api(control: Control, settings: Settings) -> OharaApi:
    """The ASGI application for /v0."""
    resources: dict[str, Resource] = {}
    endpoints: list[Endpoint] = [*openapi.endpoints()]
    kinds = Kinds(resources)
    resources |= {
        "objects": Objects(control),
        "volumes": Volumes(control, kinds),
        "pipelines": Pipelines(control, kinds),
        "streams": Streams(control, kinds),
        "shabondis": Shabondis(control, kinds),
    }
    return OharaApi(resources, endpoints, max_body_bytes=settings.max_body_bytes)
