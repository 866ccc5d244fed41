"""Lists the kinds of manifests in the order of creation: each kind after the kinds that its resources may name."""

from __future__ import annotations

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinitionSpec, DefinitionGoal
from keelman.api.connect.v1.connector_service_pb2 import CreateConnectorRequest
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedConnectorSpec
from keelman.api.connect.v1.document_pb2 import Document
from keelman.api.connect.v1.plugin_import_service_pb2 import CreatePluginImportRequest
from keelman.api.connect.v1.plugin_service_pb2 import UploadHeader
from keelman.api.connect.v1.secret_service_pb2 import CreateSecretRequest
from keelman.api.connect.v1.spark_cluster_pb2 import SparkClusterSpec
from keelman.api.connect.v1.topic_pb2 import TopicGoal, TopicSpec
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_configuration_service_pb2 import CreateWorkerConfigurationRequest
from keelman.api.node.v1.node_pb2 import NodeSpec
from keelman.cli import kinds
from keelman.cli.kinds import Kind
from keelman.cli.manifests import forms
from keelman.cli.manifests.connector_form import ConnectorForm
from keelman.cli.manifests.kept_forms import NAMES, ConfigurationForm, DocumentForm, ImportForm, PluginForm, SecretForm

FORMS: tuple[forms.Form, ...] = (
    SecretForm(kinds.SECRETS, CreateSecretRequest),
    ConfigurationForm(kinds.WORKER_CONFIGURATIONS, CreateWorkerConfigurationRequest),
    PluginForm(kinds.PLUGINS, UploadHeader, without=(*NAMES, "version", "size_bytes", "any_file", "inspect_only")),
    ImportForm(kinds.PLUGIN_IMPORTS, CreatePluginImportRequest),
    DocumentForm(
        kinds.DOCUMENTS,
        Document,
        without=("kind", "scope", "key", "uid", "create_time", "update_time", "etag"),
        pruned=False,
    ),
    forms.Form(kinds.NODES, NodeSpec, kept=("cordoned", "draining"), pruned=False),
    forms.ClusterForm(kinds.BROKER_CLUSTERS, BrokerClusterSpec, goals=(forms.RUNNING, forms.STOPPED)),
    forms.AppliedForm(
        kinds.TOPICS,
        TopicSpec,
        kept=(*forms.OWNERS, "topic"),
        goals=(forms.PRESENT, forms.ABSENT),
        new_goal=forms.PRESENT,
        goal_enum=TopicGoal,
    ),
    forms.Form(kinds.SPARK_CLUSTERS, SparkClusterSpec),
    forms.ClusterForm(
        kinds.WORKER_CLUSTERS, WorkerClusterSpec, goals=(forms.RUNNING, forms.STOPPED), new_goal=forms.RUNNING
    ),
    forms.AppliedForm(
        kinds.DEFINITIONS,
        ConnectorDefinitionSpec,
        kept=(*forms.OWNERS, "connector"),
        goals=(forms.RUNNING, forms.PAUSED, forms.STOPPED, forms.ABSENT),
        new_goal=forms.RUNNING,
        goal_enum=DefinitionGoal,
    ),
    forms.DedicatedForm(
        kinds.DEDICATED_CONNECTORS,
        DedicatedConnectorSpec,
        kept=(*forms.OWNERS, "connector", "topic_prefix", "topic_suffix"),
        goals=(forms.RUNNING, forms.PAUSED),
    ),
    ConnectorForm(
        kinds.CONNECTORS,
        CreateConnectorRequest,
        without=("worker_cluster", "name", "request_id"),
        goals=(forms.RUNNING, forms.PAUSED, forms.STOPPED),
        new_goal=forms.RUNNING,
        pruned=False,
        batched=False,
    ),
)


def form_of(kind: Kind) -> forms.Form:
    """Returns the form of a kind that has one."""
    return next(form for form in FORMS if form.kind is kind)
