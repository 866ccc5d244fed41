"""Builds the API: the only wiring of this package."""

from __future__ import annotations

from starlette.types import ASGIApp

from keelman.gateway.ohara.brokers.brokers import Brokers
from keelman.gateway.ohara.connectors.connectors import OharaConnectors
from keelman.gateway.ohara.connectors.kept_classes import KeptClasses
from keelman.gateway.ohara.connectors.worker_classes import WorkerClasses
from keelman.gateway.ohara.documents.clusters import Shabondis, Streams
from keelman.gateway.ohara.documents.objects import Objects
from keelman.gateway.ohara.documents.pipelines import Pipelines
from keelman.gateway.ohara.documents.volumes import Volumes
from keelman.gateway.ohara.documents.zookeepers import Zookeepers
from keelman.gateway.ohara.files.files import OharaFiles
from keelman.gateway.ohara.inspection.rdb import Rdb
from keelman.gateway.ohara.inspection.services import Inspect
from keelman.gateway.ohara.inspection.validation import Validation
from keelman.gateway.ohara.kinds import Kinds
from keelman.gateway.ohara.nodes.containers import container_endpoints
from keelman.gateway.ohara.nodes.logs import ReadLog, log_endpoints
from keelman.gateway.ohara.nodes.nodes import OharaNodes
from keelman.gateway.ohara.openapi import document as openapi
from keelman.gateway.ohara.private import PATH, Private
from keelman.gateway.ohara.routes import PREFIX, Endpoint, OharaApi
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.topics.peek import Peek
from keelman.gateway.ohara.topics.topics import OharaTopics
from keelman.gateway.ohara.wire.resource import OharaResource
from keelman.gateway.ohara.workers.resource import Workers
from keelman.gateway.settings import Settings
from keelman.workers.rest.asking import ClusterRequests


def ohara_api(
    control: OharaControl, asking: ClusterRequests, settings: Settings, *, read_log: ReadLog
) -> dict[str, ASGIApp]:
    """Returns the ASGI applications by their paths, the one for /v0 first. `asking` calls workers, only for inspections
    and validation."""
    resources: dict[str, OharaResource] = {}
    endpoints: list[Endpoint] = [*openapi.endpoints(), *container_endpoints(control), *log_endpoints(control, read_log)]
    kinds, stored_classes = Kinds(resources), KeptClasses(control)
    classes = WorkerClasses(asking, stored_classes)
    address = settings.advertised_http or f"{settings.http_host}:{settings.http_port}"
    own_host = address.rpartition(":")[0]
    files = OharaFiles(control, kinds, address=address, stored_classes=stored_classes)
    inspections = (Inspect(control, kinds, classes), Validation(control, classes), Rdb(control, classes))
    for group in (files, Peek(control), *inspections):
        endpoints += group.endpoints
    resources |= {
        "files": files,
        "nodes": OharaNodes(control, own_host=own_host, cover_passwords=settings.ohara_cover_passwords),
        "zookeepers": Zookeepers(control),
        "brokers": Brokers(control),
        "topics": OharaTopics(control, kinds),
        "connectors": OharaConnectors(control, classes),
        "objects": Objects(control, kinds),
        "volumes": Volumes(control, kinds),
        "pipelines": Pipelines(control, kinds),
        "streams": Streams(control, kinds),
        "shabondis": Shabondis(control, kinds),
        "workers": Workers(control),
    }
    most = settings.max_body_bytes
    return {
        PREFIX: OharaApi(resources, endpoints, max_body_bytes=most),
        PATH: Private(resources, settings.ohara_wipe_token_file, max_body_bytes=most),
    }
