"""Worker configurations: files of worker properties for dedicated connectors, kept in revisions."""

from __future__ import annotations

import base64
import dataclasses
import uuid
from typing import Any

from keelman.api.connect.v1 import worker_configuration_pb2
from keelman.api.connect.v1 import worker_configuration_service_pb2 as pb
from keelman.api.connect.v1 import worker_configuration_service_pb2_grpc as grpc
from keelman.connect.config.secret_keys import literal_secrets
from keelman.model.annotations import Annotations
from keelman.model.connectors.worker_configuration import ConfigurationRevision, WorkerConfiguration
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.rpc.mapping import message_of
from keelman.runtime.logs.redaction import REDACTOR
from keelman.state.database.times import micros
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.annotations import annotated, check_description, new_annotations, origin_page, reworded
from keelman.state.resources.checks import check_free, present
from keelman.state.resources.hidden import shown_spec
from keelman.state.resources.noun import Noun
from keelman.state.resources.rows import plain, read
from keelman.state.resources.serving import NounApi, get, list_page, writing
from keelman.state.resources.snapshot import WORKER_CONFIGURATION, Snapshot
from keelman.state.resources.transaction import Transaction
from keelman.workers.configurations import checked_content, shown_content

MAX_BYTES = 2 << 20  # a client with default settings accepts an answer of 4 MiB
SECRETS = "secrets"  # the value under a key of this name is sealed as a whole


def _spec(configuration: WorkerConfiguration) -> dict[str, Any]:
    revisions = [
        {
            "revision": revision.revision,
            "create_time": micros(revision.create_time),
            "description": revision.description,
        }
        for revision in configuration.revisions
    ]
    contents = {str(number): base64.b64encode(content).decode() for number, content in configuration.contents.items()}
    return {"annotations": plain(configuration.annotations), "revisions": revisions, SECRETS: contents}


def _fields(spec: dict[str, Any]) -> dict[str, Any]:
    contents = spec[SECRETS]
    revisions = tuple(
        read(ConfigurationRevision, revision | {"content": base64.b64decode(contents[str(revision["revision"])])})
        for revision in spec["revisions"]
    )
    return {"annotations": read(Annotations, spec["annotations"]), "revisions": revisions}


def configuration_message(configuration: WorkerConfiguration) -> worker_configuration_pb2.WorkerConfiguration:
    """Returns a worker configuration as lists and events have it: without its contents."""
    annotations = shown_spec(configuration).annotations
    pb2 = worker_configuration_pb2
    revisions = [
        message_of(pb2.WorkerConfigurationRevision, revision, content=None) for revision in configuration.revisions
    ]
    return message_of(pb2.WorkerConfiguration, configuration, revisions=revisions, **annotated(annotations))


def answered(
    configuration: WorkerConfiguration, snapshot: Snapshot, *, with_secrets: bool = False
) -> worker_configuration_pb2.WorkerConfiguration:
    """Returns a worker configuration with its contents and its users."""
    message = configuration_message(configuration)
    for revision in message.revisions:
        content = configuration.contents[revision.revision]
        revision.content = content if with_secrets else shown_content(content)
    if with_secrets and configuration.annotations.extra is not None:
        message.extra.update(configuration.annotations.extra)
    message.users.extend(snapshot.users_of_configuration(configuration.name))
    return message


NOUN = Noun(
    WorkerConfiguration, configuration_message,
    left_out=("annotations", "revisions"),
    more=lambda configuration: {"spec": _spec(configuration)}, fields=lambda _, payload: _fields(payload["spec"]),
)  # fmt: skip


def create(tx: Transaction, request: pb.CreateWorkerConfigurationRequest) -> WorkerConfiguration:
    """Stores a new worker configuration with its first revision.

    Raises InvalidArgument for illegal content, and AlreadyExists or FailedPrecondition if another has the name or the
    origin.
    """
    check_free("worker configuration", request.name, tx.snapshot.worker_configurations)
    annotations = new_annotations(WORKER_CONFIGURATION, request, tx.snapshot)
    first = ConfigurationRevision(1, tx.now, annotations.description, _checked_content(request.content))
    configuration = WorkerConfiguration(request.name, str(uuid.uuid4()), tx.now, tx.now, (first,), annotations)
    return tx.put(configuration)


def create_revision(tx: Transaction, request: pb.CreateWorkerConfigurationRevisionRequest) -> WorkerConfiguration:
    """Adds a revision to the worker configuration."""
    configuration = present(tx, WorkerConfiguration, request.name, request.etag)
    content = _checked_content(request.content)
    if sum(map(len, configuration.contents.values())) + len(content) > MAX_BYTES:
        legal = f"all revisions of a worker configuration have at most {MAX_BYTES} bytes: create another one"
        raise InvalidArgument.of("content", f"{len(content)} bytes more", legal)
    check_description(request.description)
    revision = ConfigurationRevision(configuration.latest.revision + 1, tx.now, request.description, content)
    return tx.put(dataclasses.replace(configuration, revisions=(*configuration.revisions, revision)))


def update(tx: Transaction, request: pb.UpdateWorkerConfigurationRequest) -> WorkerConfiguration:
    """Changes the description and other annotations of the worker configuration."""
    configuration = present(tx, WorkerConfiguration, request.name, request.etag)
    changed = reworded(configuration, configuration_message(configuration), WORKER_CONFIGURATION, request)
    return configuration if changed == configuration else tx.put(changed)


def delete(tx: Transaction, request: pb.DeleteWorkerConfigurationRequest) -> WorkerConfiguration:
    """Deletes a worker configuration and returns it. Raises FailedPrecondition if it is used."""
    configuration = present(tx, WorkerConfiguration, request.name, request.etag)
    if users := tx.snapshot.users_of_configuration(configuration.name):
        raise FailedPrecondition(
            f"worker configuration {configuration.name!r} is used by {', '.join(users)}: give these another "
            "one, or delete them first",
            reason="IN_USE",
            metadata={"name": configuration.name, "users": ",".join(users)},
        )
    tx.drop(WORKER_CONFIGURATION, configuration.name)
    return configuration


def _checked_content(content: bytes) -> bytes:
    REDACTOR.add(literal_secrets(checked_content(content)), passing=True)
    return content


class WorkerConfigurationApi(NounApi[NounParts], grpc.WorkerConfigurationServiceServicer):
    """Worker configurations."""

    noun = WORKER_CONFIGURATION
    GetWorkerConfiguration, ListWorkerConfigurations = get, list_page

    @writing()
    def CreateWorkerConfiguration(
        self, tx: Transaction, request: pb.CreateWorkerConfigurationRequest
    ) -> WorkerConfiguration:
        """Stores a worker configuration with its first revision."""
        return create(tx, request)

    @writing()
    def CreateWorkerConfigurationRevision(
        self, tx: Transaction, request: pb.CreateWorkerConfigurationRevisionRequest
    ) -> WorkerConfiguration:
        """Adds a revision to a worker configuration."""
        return create_revision(tx, request)

    @writing()
    def UpdateWorkerConfiguration(
        self, tx: Transaction, request: pb.UpdateWorkerConfigurationRequest
    ) -> WorkerConfiguration:
        """Changes the annotations of a worker configuration."""
        return update(tx, request)

    @writing()
    def DeleteWorkerConfiguration(
        self, tx: Transaction, request: pb.DeleteWorkerConfigurationRequest
    ) -> WorkerConfiguration:
        """Deletes a worker configuration."""
        return delete(tx, request)

    def _page(self, request: pb.ListWorkerConfigurationsRequest) -> tuple[list[WorkerConfiguration], str]:
        return origin_page(self._snapshot, WORKER_CONFIGURATION, request)

    def _shown(
        self, configuration: WorkerConfiguration, request: pb.GetWorkerConfigurationRequest
    ) -> worker_configuration_pb2.WorkerConfiguration:
        return answered(configuration, self._snapshot, with_secrets=request.with_secrets)

    def _in_list(
        self, configuration: WorkerConfiguration, request: pb.ListWorkerConfigurationsRequest
    ) -> worker_configuration_pb2.WorkerConfiguration:
        message = configuration_message(configuration)
        message.users.extend(self._snapshot.users_of_configuration(configuration.name))
        return message

    def _fields(self, configuration: WorkerConfiguration, tx: Transaction) -> dict[str, Any]:
        return {WORKER_CONFIGURATION: answered(configuration, tx.snapshot)}


API = WorkerConfigurationApi
