"""The rights that each gateway call needs: one table of RPCs, one of HTTP routes. docs/authorization.md shows both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keelman.gateway.access import scopes
from keelman.gateway.access.scopes import ANYWHERE, CLUSTER, DEFINITION, INSTALLATION, NAMED, CallScope, listed
from keelman.model.access.roles import Right


@dataclass(frozen=True, slots=True)
class Needs:
    """The right that a call needs, and its scope. `right` None: every caller is admitted, known or not.
    `shows_secrets`: its answer has a connector's configuration as it is stored."""

    right: Right | None
    scope: CallScope = INSTALLATION
    shows_secrets: bool = False


def _view(scope: CallScope = INSTALLATION) -> Needs:
    return Needs(Right.VIEW, scope)


def _operate(scope: CallScope = INSTALLATION) -> Needs:
    return Needs(Right.OPERATE, scope)


def _administer(scope: CallScope = INSTALLATION) -> Needs:
    return Needs(Right.ADMINISTER, scope)


ANYBODY = Needs(None, ANYWHERE)

_SERVICES: Mapping[str, Mapping[str, Needs]] = {
    "grpc.health.v1.Health": {"Check": ANYBODY, "List": ANYBODY, "Watch": ANYBODY},
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": _view(ANYWHERE)},
    "keelman.api.access.v1.JoinService": {"Join": ANYBODY},  # it proves a join token
    "keelman.api.access.v1.JoinTokenService": {
        "ListJoinTokens": _administer(),
        "CreateJoinToken": _administer(),
        "DeleteJoinToken": _administer(),
    },
    "keelman.api.connect.v1.BatchService": {"WriteBatch": _view(scopes.EACH)},
    "keelman.api.connect.v1.BrokerClusterService": {
        "GetBrokerCluster": _view(),
        "ListBrokerClusters": _view(),
        "CreateBrokerCluster": _administer(),
        "UpdateBrokerCluster": _administer(),
        "DeleteBrokerCluster": _administer(),
        "StartBrokerCluster": _operate(),
        "StopBrokerCluster": _operate(),
    },
    "keelman.api.connect.v1.ConnectorDefinitionService": {
        "GetConnectorDefinition": _view(DEFINITION),
        "ListConnectorDefinitions": _view(scopes.DEFINITIONS),
        "CreateConnectorDefinition": _operate(scopes.NEW_DEFINITION),
        "UpdateConnectorDefinition": _operate(DEFINITION),
        "ApplyConnectorDefinition": _operate(DEFINITION),
        "DeleteConnectorDefinition": _operate(DEFINITION),
    },
    "keelman.api.connect.v1.ConnectorService": {
        "GetConnector": Needs(Right.VIEW, CLUSTER, shows_secrets=True),
        "ListConnectors": _view(scopes.CONNECTORS),
        "WatchConnectors": _view(scopes.CONNECTOR_CHANGES),
        "CreateConnector": _operate(CLUSTER),
        "UpdateConnector": _operate(CLUSTER),
        "DeleteConnector": _operate(CLUSTER),
        "PauseConnector": _operate(CLUSTER),
        "ResumeConnector": _operate(CLUSTER),
        "StopConnector": _operate(CLUSTER),
        "RestartConnector": _operate(CLUSTER),
    },
    "keelman.api.connect.v1.DedicatedConnectorService": {
        "GetDedicatedConnector": _view(NAMED),
        "ListDedicatedConnectors": _view(scopes.DEDICATED),
        "CreateDedicatedConnector": _administer(),
        "UpdateDedicatedConnector": _administer(NAMED),
        "PauseDedicatedConnector": _operate(NAMED),
        "ResumeDedicatedConnector": _operate(NAMED),
        "RestartDedicatedConnector": _operate(NAMED),
        "DeleteDedicatedConnector": _administer(NAMED),
    },
    "keelman.api.connect.v1.DocumentService": {
        "GetDocument": _administer(),  # with its secrets, on request
        "ListDocuments": _administer(),
        "PutDocument": _administer(),
        "DeleteDocument": _administer(),
    },
    "keelman.api.connect.v1.OperationService": {
        "GetOperation": _view(scopes.OPERATION),
        "ListOperations": _view(scopes.OPERATIONS),
        "CancelOperation": _operate(scopes.OPERATION),
        "DeleteOperation": _operate(scopes.OPERATION),
    },
    "keelman.api.connect.v1.PluginImportService": {
        "GetPluginImport": _view(),
        "ListPluginImports": _view(),
        "CreatePluginImport": _administer(),
        "UpdatePluginImport": _administer(),
        "DeletePluginImport": _administer(),
    },
    "keelman.api.connect.v1.PluginService": {
        "GetPlugin": _view(),
        "ListPlugins": _view(),
        "UploadPlugin": _administer(),
        "DownloadPlugin": _view(),
        "UpdatePlugin": _administer(),
        "DeletePlugin": _administer(),
        "ListWorkerPlugins": _view(CLUSTER),
    },
    "keelman.api.connect.v1.SecretService": {
        "GetSecret": _view(),
        "ListSecrets": _view(),
        "CreateSecret": _administer(),
        "UpdateSecret": _administer(),
        "DeleteSecret": _administer(),
    },
    "keelman.api.connect.v1.TopicService": {
        "GetTopic": _view(),
        "ListTopics": _view(),
        "CreateTopic": _operate(),
        "UpdateTopic": _operate(),
        "ApplyTopic": _operate(),
        "DeleteTopic": _operate(),
        "PeekTopic": _operate(),  # shows records
    },
    "keelman.api.connect.v1.WorkerClusterService": {
        "GetWorkerCluster": _view(NAMED),
        "ListWorkerClusters": _view(scopes.WORKER_CLUSTERS),
        "CreateWorkerCluster": _administer(scopes.NEW_WORKER_CLUSTER),
        "UpdateWorkerCluster": _administer(NAMED),
        "DeleteWorkerCluster": _administer(NAMED),
        "StartWorkerCluster": _operate(NAMED),
        "RestartWorkerCluster": _operate(NAMED),
        "StopWorkerCluster": _operate(NAMED),
        "DescribeStorageTopics": _view(NAMED),
    },
    "keelman.api.connect.v1.WorkerConfigurationService": {
        "GetWorkerConfiguration": _view(),
        "ListWorkerConfigurations": _view(),
        "CreateWorkerConfiguration": _administer(),
        "CreateWorkerConfigurationRevision": _administer(),
        "UpdateWorkerConfiguration": _administer(),
        "DeleteWorkerConfiguration": _administer(),
    },
    "keelman.api.connect.v1.WorkerService": {
        "GetWorker": _view(scopes.WORKER),
        "ListWorkers": _view(listed("workers")),
        "RestartWorker": _operate(scopes.WORKER),
    },
    "keelman.api.copy.v1.CopyRunService": {
        "GetCopyRun": _view(scopes.COPY_RUN),
        "ListCopyRuns": _view(listed("copy_runs")),
        "WatchCopyRuns": _view(listed("copy_runs")),
    },
    "keelman.api.event.v1.AuditEventService": {"ListAuditEvents": _administer()},
    "keelman.api.event.v1.WatchService": {"Watch": _view(scopes.EVENTS)},
    "keelman.api.node.v1.AgentService": {
        "ListLocalWorkloads": _administer(),  # not offered here
        "StreamLogs": _view(scopes.WORKLOAD),
        "Drain": _administer(),  # not offered here
    },
    "keelman.api.node.v1.NodeService": {
        "GetNode": _view(),
        "ListNodes": _view(),
        "CreateNode": _administer(),
        "UpdateNode": _administer(),
        "CordonNode": _operate(),
        "UncordonNode": _operate(),
        "DrainNode": _operate(),
        "DeleteNode": _administer(),
    },
    "keelman.api.node.v1.PlanService": {"ListPlans": _view()},
    "keelman.api.node.v1.WorkloadService": {"ListWorkloads": _view(scopes.WORKLOADS)},
}
RPCS: Mapping[str, Needs] = {
    f"/{service}/{method}": needs for service, methods in _SERVICES.items() for method, needs in methods.items()
}
"""By /package.Service/Method."""


@dataclass(frozen=True, slots=True)
class RouteNeeds:
    """The needs of a route's requests: of requests that only read, and of all others."""

    reads: Needs
    writes: Needs


_CLUSTER = CallScope("cluster")
_OPERATED = RouteNeeds(_view(), _operate())
_ADMINISTERED = RouteNeeds(_view(), _administer())
ROUTES: Mapping[str, RouteNeeds] = {
    "/": RouteNeeds(_view(ANYWHERE), _view(ANYWHERE)),
    "/healthz": RouteNeeds(ANYBODY, ANYBODY),
    "/readyz": RouteNeeds(ANYBODY, ANYBODY),
    "/metrics": RouteNeeds(_view(), _view()),
    "/clusters/{name}": RouteNeeds(_view(_CLUSTER), _operate(_CLUSTER)),
    "/clusters/{name}/admin": RouteNeeds(_view(_CLUSTER), _administer(_CLUSTER)),
    "/clusters/{name}/connectors/{connector}/dead-letters": RouteNeeds(_operate(_CLUSTER), _operate(_CLUSTER)),
    "/v0": _ADMINISTERED,
    **dict.fromkeys(
        (
            "/v0/topics", "/v0/connectors", "/v0/pipelines", "/v0/streams", "/v0/shabondis", "/v0/objects",
            "/v0/inspect", "/v0/validate",
        ),
        _OPERATED,
    ),
    "/_private": RouteNeeds(ANYBODY, ANYBODY),  # has its own token: gateway.ohara_wipe_token_file
    "/v1": RouteNeeds(ANYBODY, ANYBODY),  # requests are signed: MANAGED_CONNECT
}  # fmt: skip
"""Needs by path: each entry also covers the paths below it, unless a longer entry does."""
_CHANGED = ("connectors", "custom-plugins", "worker-configurations")
MANAGED_CONNECT: Mapping[tuple[str, str], Right] = {
    **{("POST", path): Right.ADMINISTER for path in _CHANGED},
    **{("GET", path): Right.VIEW for path in _CHANGED},
    **{("GET", f"{path}/{{arn}}"): Right.VIEW for path in _CHANGED},
    **{("DELETE", f"{path}/{{arn}}"): Right.ADMINISTER for path in _CHANGED},
    ("PUT", "connectors/{arn}"): Right.ADMINISTER,
    ("PUT", "connectors/{arn}/pause"): Right.OPERATE,
    ("PUT", "connectors/{arn}/resume"): Right.OPERATE,
    ("POST", "connectors/{arn}/restart"): Right.OPERATE,
    ("GET", "connectors/{arn}/operations"): Right.VIEW,
    ("GET", "connectorOperations/{arn}"): Right.VIEW,
    ("GET", "tags/{arn}"): Right.VIEW,
    ("POST", "tags/{arn}"): Right.OPERATE,
    ("DELETE", "tags/{arn}"): Right.OPERATE,
}
"""The right that the role of an access key must have, by method and path below /v1; always on its own account."""


def needs_of_route(segments: Sequence[str]) -> RouteNeeds:
    """Returns the needs of requests of a path: the entry of the longest pattern that it begins with."""
    best, length = ROUTES["/"], 0
    for pattern, needs in ROUTES.items():
        words = [*filter(None, pattern.split("/"))]
        if length < len(words) <= len(segments):
            pairs = zip(words, segments, strict=False)
            if all(word == segment or word.startswith("{") for word, segment in pairs):
                best, length = needs, len(words)
    return best
