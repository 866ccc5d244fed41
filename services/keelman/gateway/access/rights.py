"""The rights that each gateway call needs: one table of RPCs, one of HTTP routes. docs/authorization.md shows both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keelman.gateway.access import scopes
from keelman.gateway.access.scopes import ANYWHERE, CLUSTER, DEFINITION, EACH, INSTALLATION, NAMED, CallScope, listed
from keelman.model.access.roles import Right

READING = frozenset((None, Right.VIEW, Right.AUDIT))
"""The rights of calls that are no writes."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The right that a call needs, and its scope. `right` None: every caller is admitted, known or not.
    `shows_secrets`: its answer has a connector's configuration as it is stored."""

    right: Right | None
    scope: CallScope = INSTALLATION
    shows_secrets: bool = False

    @property
    def changes(self) -> bool:
        """Whether the call is a write."""
        return self.right not in READING or self.scope is EACH


def _view(scope: CallScope = INSTALLATION) -> Needs:
    return Needs(Right.VIEW, scope)


def _restart(scope: CallScope = INSTALLATION) -> Needs:
    return Needs(Right.RESTART, scope)


def _configure(scope: CallScope = INSTALLATION) -> Needs:
    return Needs(Right.CONFIGURE, scope)


def _clusters(scope: CallScope = INSTALLATION) -> Needs:
    return Needs(Right.MANAGE_CLUSTERS, scope)


def _administer(scope: CallScope = INSTALLATION) -> Needs:
    return Needs(Right.ADMINISTER, scope)


_TOPICS, _NODES, _DRAIN = Needs(Right.CHANGE_TOPICS), Needs(Right.MANAGE_NODES), Needs(Right.DRAIN)
_PLUGINS, _SECRETS, _RECORDS = Needs(Right.MANAGE_PLUGINS), Needs(Right.MANAGE_SECRETS), Needs(Right.SEE_RECORDS)
ANYBODY = Needs(None, ANYWHERE)

_SERVICES: Mapping[str, Mapping[str, Needs]] = {
    "grpc.health.v1.Health": {"Check": ANYBODY, "List": ANYBODY, "Watch": ANYBODY},
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": _view(ANYWHERE)},
    "keelman.api.access.v1.AuthorityService": {"GetAuthority": _administer(), "RotateAuthority": _administer()},
    "keelman.api.access.v1.JoinService": {"Join": ANYBODY},  # it proves a join token
    "keelman.api.access.v1.JoinTokenService": {
        "ListJoinTokens": _NODES,
        "CreateJoinToken": _NODES,
        "DeleteJoinToken": _NODES,
    },
    "keelman.api.connect.v1.BatchService": {"WriteBatch": _view(scopes.EACH)},
    "keelman.api.connect.v1.BrokerClusterService": {
        "GetBrokerCluster": _view(),
        "ListBrokerClusters": _view(),
        "CreateBrokerCluster": _clusters(),
        "UpdateBrokerCluster": _clusters(),
        "DeleteBrokerCluster": _clusters(),
        "StartBrokerCluster": _restart(),
        "StopBrokerCluster": _restart(),
    },
    "keelman.api.connect.v1.ConnectorDefinitionService": {
        "GetConnectorDefinition": _view(DEFINITION),
        "ListConnectorDefinitions": _view(scopes.DEFINITIONS),
        "CreateConnectorDefinition": _configure(scopes.NEW_DEFINITION),
        "UpdateConnectorDefinition": _configure(DEFINITION),
        "ApplyConnectorDefinition": _configure(DEFINITION),
        "DeleteConnectorDefinition": _configure(DEFINITION),
    },
    "keelman.api.connect.v1.ConnectorService": {
        "GetConnector": Needs(Right.VIEW, CLUSTER, shows_secrets=True),
        "ListConnectors": _view(scopes.CONNECTORS),
        "WatchConnectors": _view(scopes.CONNECTOR_CHANGES),
        "CreateConnector": _configure(CLUSTER),
        "UpdateConnector": _configure(CLUSTER),
        "DeleteConnector": _configure(CLUSTER),
        "PauseConnector": _restart(CLUSTER),
        "ResumeConnector": _restart(CLUSTER),
        "StopConnector": _restart(CLUSTER),
        "RestartConnector": _restart(CLUSTER),
    },
    "keelman.api.connect.v1.DedicatedConnectorService": {
        "GetDedicatedConnector": _view(NAMED),
        "ListDedicatedConnectors": _view(scopes.DEDICATED),
        "CreateDedicatedConnector": _clusters(),
        "UpdateDedicatedConnector": _clusters(NAMED),
        "PauseDedicatedConnector": _restart(NAMED),
        "ResumeDedicatedConnector": _restart(NAMED),
        "RestartDedicatedConnector": _restart(NAMED),
        "DeleteDedicatedConnector": _clusters(NAMED),
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
        "CancelOperation": _configure(scopes.OPERATION),
        "DeleteOperation": _configure(scopes.OPERATION),
    },
    "keelman.api.connect.v1.PluginImportService": {
        "GetPluginImport": _view(),
        "ListPluginImports": _view(),
        "CreatePluginImport": _PLUGINS,
        "UpdatePluginImport": _PLUGINS,
        "DeletePluginImport": _PLUGINS,
    },
    "keelman.api.connect.v1.PluginService": {
        "GetPlugin": _view(),
        "ListPlugins": _view(),
        "UploadPlugin": _PLUGINS,
        "DownloadPlugin": _view(),
        "UpdatePlugin": _PLUGINS,
        "DeletePlugin": _PLUGINS,
        "ListWorkerPlugins": _view(CLUSTER),
    },
    "keelman.api.connect.v1.SecretService": {
        "GetSecret": _view(),
        "ListSecrets": _view(),
        "CreateSecret": _SECRETS,
        "UpdateSecret": _SECRETS,
        "DeleteSecret": _SECRETS,
    },
    "keelman.api.connect.v1.SparkClusterService": {
        "GetSparkCluster": _view(),
        "ListSparkClusters": _view(),
        "CreateSparkCluster": _clusters(),
        "UpdateSparkCluster": _clusters(),
        "DeleteSparkCluster": _clusters(),
    },
    "keelman.api.connect.v1.TopicService": {
        "GetTopic": _view(),
        "ListTopics": _view(),
        "CreateTopic": _TOPICS,
        "UpdateTopic": _TOPICS,
        "ApplyTopic": _TOPICS,
        "DeleteTopic": _TOPICS,
        "PeekTopic": _RECORDS,
    },
    "keelman.api.connect.v1.WorkerClusterService": {
        "GetWorkerCluster": _view(NAMED),
        "ListWorkerClusters": _view(scopes.WORKER_CLUSTERS),
        "CreateWorkerCluster": _clusters(scopes.NEW_WORKER_CLUSTER),
        "UpdateWorkerCluster": _clusters(NAMED),
        "DeleteWorkerCluster": _clusters(NAMED),
        "StartWorkerCluster": _restart(NAMED),
        "RestartWorkerCluster": _restart(NAMED),
        "StopWorkerCluster": _restart(NAMED),
        "ScaleWorkerCluster": _clusters(NAMED),
        "DescribeStorageTopics": _view(NAMED),
    },
    "keelman.api.connect.v1.WorkerConfigurationService": {
        "GetWorkerConfiguration": _view(),
        "ListWorkerConfigurations": _view(),
        "CreateWorkerConfiguration": _clusters(),
        "CreateWorkerConfigurationRevision": _clusters(),
        "UpdateWorkerConfiguration": _clusters(),
        "DeleteWorkerConfiguration": _clusters(),
    },
    "keelman.api.connect.v1.WorkerService": {
        "GetWorker": _view(scopes.WORKER),
        "ListWorkers": _view(listed("workers")),
        "RestartWorker": _restart(scopes.WORKER),
    },
    "keelman.api.copy.v1.CopyRunService": {
        "GetCopyRun": _view(scopes.COPY_RUN),
        "ListCopyRuns": _view(listed("copy_runs")),
        "WatchCopyRuns": _view(listed("copy_runs")),
    },
    "keelman.api.event.v1.AuditEventService": {"ListAuditEvents": Needs(Right.AUDIT)},
    "keelman.api.event.v1.WatchService": {"Watch": _view(scopes.EVENTS)},
    "keelman.api.node.v1.AgentService": {
        "ListLocalWorkloads": _administer(),  # not offered here
        "StreamLogs": _view(scopes.WORKLOAD),
        "Drain": _administer(),  # not offered here
    },
    "keelman.api.node.v1.NodeService": {
        "GetNode": _view(),
        "ListNodes": _view(),
        "CreateNode": _NODES,
        "UpdateNode": _NODES,
        "CordonNode": _DRAIN,
        "UncordonNode": _DRAIN,
        "DrainNode": _DRAIN,
        "DeleteNode": _NODES,
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
_ADMINISTERED = RouteNeeds(_view(), _administer())
_READ_AND_RESTART = RouteNeeds(_view(_CLUSTER), _restart(_CLUSTER))
_OF_RECORDS = Needs(Right.SEE_RECORDS, _CLUSTER)
_CONNECTOR = "/clusters/{name}/connectors/{connector}"
ROUTES: Mapping[str, RouteNeeds] = {
    "/": RouteNeeds(_view(ANYWHERE), _view(ANYWHERE)),
    "/healthz": RouteNeeds(ANYBODY, ANYBODY),
    "/readyz": RouteNeeds(ANYBODY, ANYBODY),
    "/metrics": RouteNeeds(_view(), _view()),
    "/clusters/{name}": RouteNeeds(_view(_CLUSTER), _configure(_CLUSTER)),
    "/clusters/{name}/scale": RouteNeeds(_view(_CLUSTER), _clusters(_CLUSTER)),
    "/clusters/{name}/admin": RouteNeeds(_view(_CLUSTER), _administer(_CLUSTER)),
    **{f"{_CONNECTOR}/{verb}": _READ_AND_RESTART for verb in ("restart", "pause", "resume", "stop")},
    f"{_CONNECTOR}/tasks/{{task}}/restart": _READ_AND_RESTART,
    f"{_CONNECTOR}/preview": RouteNeeds(_view(_CLUSTER), _OF_RECORDS),
    f"{_CONNECTOR}/dead-letters": RouteNeeds(_OF_RECORDS, _OF_RECORDS),
    "/v0": _ADMINISTERED,
    **dict.fromkeys(
        (
            "/v0/connectors", "/v0/pipelines", "/v0/streams", "/v0/shabondis", "/v0/objects", "/v0/validate",
        ),
        RouteNeeds(_view(), _configure()),
    ),
    "/v0/topics": RouteNeeds(_view(), _TOPICS),
    "/v0/inspect": RouteNeeds(_view(), _RECORDS),
    "/_private": RouteNeeds(ANYBODY, ANYBODY),  # has its own token: gateway.ohara_wipe_token_file
    "/v1": RouteNeeds(ANYBODY, ANYBODY),  # requests are signed: MANAGED_CONNECT
}  # fmt: skip
"""Needs by path: each entry also covers the paths below it, unless a longer entry does."""
_CHANGED = {
    "connectors": Right.MANAGE_CLUSTERS,
    "custom-plugins": Right.MANAGE_PLUGINS,
    "worker-configurations": Right.MANAGE_CLUSTERS,
}
MANAGED_CONNECT: Mapping[tuple[str, str], Right] = {
    **{("POST", path): right for path, right in _CHANGED.items()},
    **{("GET", path): Right.VIEW for path in _CHANGED},
    **{("GET", f"{path}/{{arn}}"): Right.VIEW for path in _CHANGED},
    **{("DELETE", f"{path}/{{arn}}"): right for path, right in _CHANGED.items()},
    ("PUT", "connectors/{arn}"): Right.MANAGE_CLUSTERS,
    ("PUT", "connectors/{arn}/pause"): Right.RESTART,
    ("PUT", "connectors/{arn}/resume"): Right.RESTART,
    ("POST", "connectors/{arn}/restart"): Right.RESTART,
    ("GET", "connectors/{arn}/operations"): Right.VIEW,
    ("GET", "connectorOperations/{arn}"): Right.VIEW,
    ("GET", "tags/{arn}"): Right.VIEW,
    ("POST", "tags/{arn}"): Right.CONFIGURE,
    ("DELETE", "tags/{arn}"): Right.CONFIGURE,
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
