"""Builds the API: the only wiring of this room."""

from __future__ import annotations

from keelman.gateway.ohara.connectors.worker_classes import WorkerClasses
from keelman.gateway.ohara.control import Control
from keelman.gateway.ohara.documents.clusters import Shabondis, Streams
from keelman.gateway.ohara.documents.objects import Objects
from keelman.gateway.ohara.documents.pipelines import Pipelines
from keelman.gateway.ohara.documents.volumes import Volumes
from keelman.gateway.ohara.files.files import Files
from keelman.gateway.ohara.kinds import Kinds
from keelman.gateway.ohara.openapi import document as openapi
from keelman.gateway.ohara.resource import Resource
from keelman.gateway.ohara.routes import Endpoint, OharaApi
from keelman.gateway.settings import Settings
from keelman.workers.rest.asking import Asking


def ohara_api(control: Control, asking: Asking, settings: Settings) -> OharaApi:
    """The ASGI application for /v0. `asking` is how workers are asked: for inspections and validation alone."""
    resources: dict[str, Resource] = {}
    endpoints: list[Endpoint] = [*openapi.endpoints()]
    kinds, classes = Kinds(resources), WorkerClasses(asking)
    address = settings.advertised_http or f"{settings.http_host}:{settings.http_port}"
    files = Files(control, kinds, address=address, told=classes.told)
    endpoints += files.endpoints
    resources |= {
        "files": files,
        "objects": Objects(control),
        "volumes": Volumes(control, kinds),
        "pipelines": Pipelines(control, kinds),
        "streams": Streams(control, kinds),
        "shabondis": Shabondis(control, kinds),
    }
    return OharaApi(resources, endpoints, max_body_bytes=settings.max_body_bytes)
