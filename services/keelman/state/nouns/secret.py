"""Secrets: values that workers are given beside their spec, and that no answer, list or event has."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import Message
from sqlmodel import Field, SQLModel

from keelman.api.connect.v1 import secret_pb2
from keelman.api.connect.v1 import secret_service_pb2 as pb
from keelman.api.connect.v1 import secret_service_pb2_grpc as grpc
from keelman.model.cluster import Annotations
from keelman.model.errors import AlreadyExists, Exhausted, FailedPrecondition, InvalidArgument
from keelman.model.secret import Secret, checked_secret_name, checked_values
from keelman.rpc.server import Context, Service
from keelman.rpc.times import to_timestamp
from keelman.runtime.logs.redaction import HIDDEN, REDACTOR
from keelman.state.nouns.checks import check_etag
from keelman.state.nouns.clusters import checked_annotations
from keelman.state.nouns.noun import Noun, Parts, service
from keelman.state.nouns.rows import big_column, json_column, micros, moment, plain, read
from keelman.state.nouns.serving import has_labels, page_of, written
from keelman.state.planning.node_secrets import users_of
from keelman.state.snapshot import SECRET, Snapshot

if TYPE_CHECKING:
    from keelman.state.store import Transaction

MAX_TOTAL_BYTES = 2 << 20  # a node is sent all that its workers may read in one message of at most 4 MiB
SECRETS = "secrets"  # what stands under a key of this name is sealed as a whole
CHANGED = ("values", "description", "labels")
M = TypeVar("M", bound=Message)


class SecretRow(SQLModel, table=True):
    """A secret; `spec` is JSON of its values, sealed, and of what is said of it."""

    __tablename__ = "secret"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=big_column())
    update_time: int = Field(sa_column=big_column())
    revision: int = Field(sa_column=big_column())
    spec: dict[str, Any] = Field(sa_column=json_column())


def to_row(secret: Secret) -> dict[str, Any]:
    """The values of its row."""
    return {
        "name": secret.name, "uid": secret.uid, "create_time": micros(secret.create_time),
        "update_time": micros(secret.update_time), "revision": int(secret.etag or 0),
        "spec": {"annotations": plain(secret.annotations), SECRETS: dict(secret.values)},
    }  # fmt: skip


def from_row(row: SecretRow) -> Secret:
    """The secret of a row."""
    return Secret(
        row.name, row.uid, moment(row.create_time), moment(row.update_time), row.spec[SECRETS],
        read(Annotations, row.spec["annotations"]), str(row.revision),
    )  # fmt: skip


def secret_message(secret: Secret) -> secret_pb2.Secret:
    """A secret as users and events see it."""
    return secret_pb2.Secret(
        name=secret.name,
        uid=secret.uid,
        create_time=to_timestamp(secret.create_time),
        update_time=to_timestamp(secret.update_time),
        etag=secret.etag,
        description=secret.annotations.description,
        labels=dict(secret.annotations.labels),
        keys=sorted(secret.values),
    )


NOUN = Noun(Secret, SecretRow, to_row, from_row, secret_message)


def answered(secret: Secret, snapshot: Snapshot) -> secret_pb2.Secret:
    """A secret with what is known to refer to it."""
    made = secret_message(secret)
    made.users.extend(users_of(secret.name, snapshot))
    return made


def create(tx: Transaction, request: pb.CreateSecretRequest) -> Secret:
    """A new secret."""
    checked_secret_name("name", request.name)
    if request.name in tx.snapshot.resources(SECRET):
        raise AlreadyExists(f"name: a secret named {request.name!r} exists already: choose another name")
    annotations = checked_annotations("", Annotations(request.description, dict(request.labels)), None)
    made = Secret(request.name, str(uuid.uuid4()), tx.now, tx.now, _kept_values(request.values), annotations)
    _check_room(tx.snapshot, made)
    return tx.put(made)


def update(tx: Transaction, request: pb.UpdateSecretRequest) -> Secret:
    """The secret with other values, or other words about it."""
    found = _found(tx, request.name, request.etag)
    paths = list(request.update_mask.paths) or CHANGED
    if wrong := next((path for path in paths if path not in CHANGED), ""):
        raise InvalidArgument.of("update_mask", wrong, f"one of {', '.join(CHANGED)}")
    annotations, values = found.annotations, found.values
    if "description" in paths:
        annotations = dataclasses.replace(annotations, description=request.description)
    if "labels" in paths:
        annotations = dataclasses.replace(annotations, labels=dict(request.labels))
    if "values" in paths:
        values = _kept_values(request.values)
    changed = dataclasses.replace(found, values=values, annotations=checked_annotations("", annotations, None))
    _check_room(tx.snapshot, changed)
    return found if changed == found else tx.put(changed)


def delete(tx: Transaction, request: pb.DeleteSecretRequest) -> Secret:
    """The secret that is gone. Raises FailedPrecondition for one that is known to be referred to."""
    found = _found(tx, request.name, request.etag)
    if users := users_of(found.name, tx.snapshot):
        raise FailedPrecondition(
            f"secret {found.name!r} is referred to by {', '.join(users)}: have these refer to another one first",
            reason="IN_USE",
            metadata={"name": found.name, "users": ",".join(users)},
        )
    tx.drop(SECRET, found.name)
    return found


def _found(tx: Transaction, name: str, etag: str) -> Secret:
    found: Secret = tx.snapshot.named(SECRET, name)
    check_etag(name, etag, found.etag)
    return found


def _kept_values(values: Any) -> dict[str, str]:
    found = checked_values("values", values)
    REDACTOR.add({value: HIDDEN for value in found.values() if value})
    return found


def _check_room(snapshot: Snapshot, made: Secret) -> None:
    others = (one for one in snapshot.resources(SECRET).values() if one.name != made.name)
    total = sum(_size(one) for one in others) + _size(made)
    if total > MAX_TOTAL_BYTES:
        raise Exhausted(
            f"values: all secrets together have {total} bytes with it: at most {MAX_TOTAL_BYTES} are kept",
            reason="SECRETS_QUOTA",
        )


def _size(secret: Secret) -> int:
    return sum(len(key) + len(value.encode(errors="surrogatepass")) for key, value in secret.values.items())


@dataclass(frozen=True, slots=True)
class SecretApi(grpc.SecretServiceServicer):
    """Secrets."""

    parts: Parts

    async def GetSecret(self, request: pb.GetSecretRequest, context: Context) -> pb.GetSecretResponse:
        """One secret."""
        snapshot = self.parts.store.snapshot
        return pb.GetSecretResponse(secret=answered(snapshot.named(SECRET, request.name), snapshot))

    async def ListSecrets(self, request: pb.ListSecretsRequest, context: Context) -> pb.ListSecretsResponse:
        """A page of secrets."""
        snapshot, labels = self.parts.store.snapshot, request.labels.items()
        names, known = snapshot.names(SECRET), snapshot.resources(SECRET)
        part, token = page_of(names, known, request, lambda one: has_labels(one.annotations.labels, labels))
        return pb.ListSecretsResponse(secrets=map(secret_message, part), next_page_token=token)

    async def CreateSecret(self, request: pb.CreateSecretRequest, context: Context) -> pb.CreateSecretResponse:
        """Keeps a new secret."""
        return await self._written(request, pb.CreateSecretResponse, create)

    async def UpdateSecret(self, request: pb.UpdateSecretRequest, context: Context) -> pb.UpdateSecretResponse:
        """Changes a secret."""
        return await self._written(request, pb.UpdateSecretResponse, update)

    async def DeleteSecret(self, request: pb.DeleteSecretRequest, context: Context) -> pb.DeleteSecretResponse:
        """Forgets a secret."""
        return await self._written(request, pb.DeleteSecretResponse, delete)

    async def _written(self, request: Any, answer: type[M], work: Callable[[Transaction, Any], Secret]) -> M:
        def fields(tx: Transaction) -> dict[str, Any]:
            found = work(tx, request)
            return {"secret": answered(found, tx.snapshot)}

        return await written(self.parts.store, request, answer, fields)


def services(parts: Parts) -> list[Service]:
    """The gRPC services of secrets."""
    return [service("connect", "SecretService", grpc.add_SecretServiceServicer_to_server, SecretApi(parts))]
