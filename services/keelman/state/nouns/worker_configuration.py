"""Worker configurations: files of properties that workers of connectors have, kept in revisions."""

from __future__ import annotations

import base64
import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import Message
from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import worker_configuration_pb2
from keelman.api.connect.v1 import worker_configuration_service_pb2 as pb
from keelman.api.connect.v1 import worker_configuration_service_pb2_grpc as grpc
from keelman.connect.config.secret_keys import literal_secrets, shown_json
from keelman.model.cluster import Annotations
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.worker_configuration import ConfigurationRevision, WorkerConfiguration
from keelman.rpc.masks import masked
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.runtime.logs.redaction import REDACTOR
from keelman.state.nouns.checks import check_etag, check_free, check_numbers
from keelman.state.nouns.clusters import (
    annotate,
    annotations_of,
    check_description,
    check_mask,
    checked_annotations,
    origin_page,
)
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.rows import big_column, json_column, micros, moment, plain, read
from keelman.state.nouns.serving import written
from keelman.state.nouns.taken import check_origin
from keelman.state.snapshot import WORKER_CONFIGURATION, Snapshot
from keelman.workers.configurations import checked_content, shown_content

if TYPE_CHECKING:
    from keelman.state.store import Transaction

MAX_BYTES = 2 << 20  # a client that sets nothing takes an answer of 4 MiB
SECRETS = "secrets"  # what stands under a key of this name is sealed as a whole
M = TypeVar("M", bound=Message)


class WorkerConfigurationRow(SQLModel, table=True):
    """A worker configuration; `spec` is JSON of its revisions, whose contents stand apart in base64."""

    __tablename__ = "worker_configuration"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())
    spec: dict[str, Any] = Field(sa_column=json_column())


def to_row(found: WorkerConfiguration) -> dict[str, Any]:
    """The values of its row."""
    revisions = [
        {"revision": one.revision, "create_time": micros(one.create_time), "description": one.description}
        for one in found.revisions
    ]
    contents = {str(number): base64.b64encode(content).decode() for number, content in found.contents.items()}
    return {
        "name": found.name, "uid": found.uid, "create_time": micros(found.create_time),
        "update_time": micros(found.update_time), "revision": int(found.etag or 0),
        "spec": {"annotations": plain(found.annotations), "revisions": revisions, SECRETS: contents},
    }  # fmt: skip


def from_row(row: WorkerConfigurationRow) -> WorkerConfiguration:
    """The worker configuration of a row."""
    contents = row.spec[SECRETS]
    revisions = tuple(
        ConfigurationRevision(
            one["revision"], moment(one["create_time"]), one["description"],
            base64.b64decode(contents[str(one["revision"])]),
        )
        for one in row.spec["revisions"]
    )  # fmt: skip
    return WorkerConfiguration(
        row.name, row.uid, moment(row.create_time), moment(row.update_time), revisions,
        read(Annotations, row.spec["annotations"]), str(row.revision),
    )  # fmt: skip


def configuration_message(found: WorkerConfiguration) -> worker_configuration_pb2.WorkerConfiguration:
    """A worker configuration as lists and events have it: without what it says."""
    made = worker_configuration_pb2.WorkerConfiguration(
        name=found.name,
        uid=found.uid,
        create_time=to_timestamp(found.create_time),
        update_time=to_timestamp(found.update_time),
        etag=found.etag,
    )
    annotations = found.annotations
    if annotations.extra is not None:
        annotations = dataclasses.replace(annotations, extra=shown_json(annotations.extra))
    annotate(made, annotations)
    for one in found.revisions:
        made.revisions.add(
            revision=one.revision, create_time=to_timestamp(one.create_time), description=one.description
        )
    return made


def answered(
    found: WorkerConfiguration, snapshot: Snapshot, *, with_secrets: bool = False
) -> worker_configuration_pb2.WorkerConfiguration:
    """A worker configuration with what it says, and with who uses it."""
    made = configuration_message(found)
    for one in made.revisions:
        content = found.contents[one.revision]
        one.content = content if with_secrets else shown_content(content)
    if with_secrets and found.annotations.extra is not None:
        made.extra.update(found.annotations.extra)
    made.users.extend(snapshot.users_of_configuration(found.name))
    return made


NOUN = Noun(WorkerConfiguration, WorkerConfigurationRow, to_row, from_row, configuration_message)


def create(tx: Transaction, request: pb.CreateWorkerConfigurationRequest) -> WorkerConfiguration:
    """A new worker configuration with its first revision.

    Raises InvalidArgument for what it may not say, AlreadyExists and FailedPrecondition for a name and an origin that
    another has.
    """
    check_free("worker configuration", request.name, tx.snapshot.worker_configurations)
    given = annotations_of(request)
    check_origin(WORKER_CONFIGURATION, request.name, given.origin, tx.snapshot, field="origin")
    check_numbers("extra", request.extra)
    annotations = checked_annotations("", given, None)
    first = ConfigurationRevision(1, tx.now, given.description, _checked_content(request.content))
    made = WorkerConfiguration(request.name, str(uuid.uuid4()), tx.now, tx.now, (first,), annotations)
    return tx.put(made)


def create_revision(tx: Transaction, request: pb.CreateWorkerConfigurationRevisionRequest) -> WorkerConfiguration:
    """The worker configuration with one more revision."""
    found = _found(tx, request.name, request.etag)
    content = _checked_content(request.content)
    if sum(map(len, found.contents.values())) + len(content) > MAX_BYTES:
        legal = f"all revisions of a worker configuration have at most {MAX_BYTES} bytes: create another one"
        raise InvalidArgument.of("content", f"{len(content)} bytes more", legal)
    check_description(request.description)
    made = ConfigurationRevision(found.latest.revision + 1, tx.now, request.description, content)
    return tx.put(dataclasses.replace(found, revisions=(*found.revisions, made)))


def update(tx: Transaction, request: pb.UpdateWorkerConfigurationRequest) -> WorkerConfiguration:
    """The worker configuration with other words about it."""
    found = _found(tx, request.name, request.etag)
    check_mask(request.update_mask)
    check_numbers("worker_configuration.extra", request.worker_configuration.extra)
    present = configuration_message(found)
    sent = annotations_of(masked(present, request.worker_configuration, request.update_mask))
    given = dataclasses.replace(sent, origin=found.annotations.origin)
    annotations = checked_annotations("worker_configuration.", given, found.annotations)
    return tx.put(dataclasses.replace(found, annotations=annotations))


def delete(tx: Transaction, request: pb.DeleteWorkerConfigurationRequest) -> WorkerConfiguration:
    """The worker configuration that is gone. Raises FailedPrecondition for one that is used."""
    found = _found(tx, request.name, request.etag)
    if users := tx.snapshot.users_of_configuration(found.name):
        raise FailedPrecondition(
            f"worker configuration {found.name!r} is used by {', '.join(users)}: give these another one, or delete "
            "them first",
            reason="IN_USE",
            metadata={"name": found.name, "users": ",".join(users)},
        )
    tx.drop(WORKER_CONFIGURATION, found.name)
    return found


def _named(snapshot: Snapshot, name: str) -> WorkerConfiguration:
    named: WorkerConfiguration = snapshot.named(WORKER_CONFIGURATION, name)
    return named


def _found(tx: Transaction, name: str, etag: str) -> WorkerConfiguration:
    found = _named(tx.snapshot, name)
    check_etag(name, etag, found.etag)
    return found


def _checked_content(content: bytes) -> bytes:
    REDACTOR.add(literal_secrets(checked_content(content)), passing=True)
    return content


@dataclass(frozen=True, slots=True)
class WorkerConfigurationApi(grpc.WorkerConfigurationServiceServicer):
    """Worker configurations."""

    parts: Parts

    async def GetWorkerConfiguration(
        self, request: pb.GetWorkerConfigurationRequest, context: Context
    ) -> pb.GetWorkerConfigurationResponse:
        """One worker configuration."""
        snapshot = self.parts.store.snapshot
        found = _named(snapshot, request.name)
        made = answered(found, snapshot, with_secrets=request.with_secrets)
        return pb.GetWorkerConfigurationResponse(worker_configuration=made)

    async def ListWorkerConfigurations(
        self, request: pb.ListWorkerConfigurationsRequest, context: Context
    ) -> pb.ListWorkerConfigurationsResponse:
        """A page of worker configurations."""
        snapshot = self.parts.store.snapshot
        part, token = origin_page(snapshot, WORKER_CONFIGURATION, request)
        answer = pb.ListWorkerConfigurationsResponse(next_page_token=token)
        for one in part:
            made = answer.worker_configurations.add()
            made.CopyFrom(configuration_message(one))
            made.users.extend(snapshot.users_of_configuration(one.name))
        return answer

    async def CreateWorkerConfiguration(
        self, request: pb.CreateWorkerConfigurationRequest, context: Context
    ) -> pb.CreateWorkerConfigurationResponse:
        """Keeps a new worker configuration."""
        return await self._written(request, pb.CreateWorkerConfigurationResponse, create)

    async def CreateWorkerConfigurationRevision(
        self, request: pb.CreateWorkerConfigurationRevisionRequest, context: Context
    ) -> pb.CreateWorkerConfigurationRevisionResponse:
        """Adds a revision."""
        return await self._written(request, pb.CreateWorkerConfigurationRevisionResponse, create_revision)

    async def UpdateWorkerConfiguration(
        self, request: pb.UpdateWorkerConfigurationRequest, context: Context
    ) -> pb.UpdateWorkerConfigurationResponse:
        """Changes what is said of one."""
        return await self._written(request, pb.UpdateWorkerConfigurationResponse, update)

    async def DeleteWorkerConfiguration(
        self, request: pb.DeleteWorkerConfigurationRequest, context: Context
    ) -> pb.DeleteWorkerConfigurationResponse:
        """Forgets one."""
        return await self._written(request, pb.DeleteWorkerConfigurationResponse, delete)

    async def _written(
        self, request: Any, answer: type[M], work: Callable[[Transaction, Any], WorkerConfiguration]
    ) -> M:
        def fields(tx: Transaction) -> dict[str, Any]:
            found = work(tx, request)
            return {"worker_configuration": answered(found, tx.snapshot)}

        return await written(self.parts.store, request, answer, fields)


def services(parts: Parts) -> list[Service]:
    """The gRPC services of worker configurations."""
    add = grpc.add_WorkerConfigurationServiceServicer_to_server
    return [service("connect", "WorkerConfigurationService", add, WorkerConfigurationApi(parts))]
