"""Secrets: values that workers get beside their spec, and that no answer, list or event contains."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from keelman.api.connect.v1 import secret_pb2
from keelman.api.connect.v1 import secret_service_pb2 as pb
from keelman.api.connect.v1 import secret_service_pb2_grpc as grpc
from keelman.model.access.secret import Secret, checked_secret_name, checked_values
from keelman.model.annotations import Annotations
from keelman.model.errors import AlreadyExists, Exhausted, FailedPrecondition, InvalidArgument
from keelman.rpc.mapping import message_of
from keelman.runtime.logs.redaction import HIDDEN, REDACTOR
from keelman.state.clusters.credentials import rotated
from keelman.state.nouns.node_secrets import users_of
from keelman.state.nouns.parts import NounParts
from keelman.state.resources.annotations import checked_annotations
from keelman.state.resources.checks import present
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, get, list_page, writing
from keelman.state.resources.snapshot import SECRET, Snapshot
from keelman.state.resources.transaction import Transaction

MAX_TOTAL_BYTES = 2 << 20  # one message of at most 4 MiB brings a node all values that its workers may read
SECRETS = "secrets"  # the value under a key of this name is sealed as a whole
CHANGED = ("values", "description", "labels")


def secret_message(secret: Secret) -> secret_pb2.Secret:
    """Returns a secret as users and events see it."""
    said = secret.annotations
    return message_of(
        secret_pb2.Secret, secret, description=said.description, labels=said.labels, keys=sorted(secret.values)
    )


NOUN = Noun(Secret, secret_message, {"spec": {"annotations": "annotations", SECRETS: "values"}})


def answered(secret: Secret, snapshot: Snapshot) -> secret_pb2.Secret:
    """Returns a secret with the resources that are known to refer to it."""
    message = secret_message(secret)
    message.users.extend(users_of(secret.name, snapshot))
    return message


def create(tx: Transaction, request: pb.CreateSecretRequest) -> Secret:
    """Stores a new secret."""
    checked_secret_name("name", request.name)
    if request.name in tx.snapshot.resources(SECRET):
        raise AlreadyExists(f"name: a secret named {request.name!r} exists already: choose another name")
    annotations = checked_annotations("", Annotations(request.description, dict(request.labels)), None)
    secret = Secret(request.name, str(uuid.uuid4()), tx.now, tx.now, _kept_values(request.values), annotations)
    _check_room(tx.snapshot, secret)
    return tx.put(secret)


def update(tx: Transaction, request: pb.UpdateSecretRequest) -> Secret:
    """Changes the values, description or labels of the secret."""
    secret = present(tx, Secret, request.name, request.etag)
    paths = list(request.update_mask.paths) or CHANGED
    if wrong := next((path for path in paths if path not in CHANGED), ""):
        raise InvalidArgument.of("update_mask", wrong, f"one of {', '.join(CHANGED)}")
    annotations, values = secret.annotations, secret.values
    if "description" in paths:
        annotations = dataclasses.replace(annotations, description=request.description)
    if "labels" in paths:
        annotations = dataclasses.replace(annotations, labels=dict(request.labels))
    if "values" in paths:
        values = _kept_values(request.values)
    changed = dataclasses.replace(secret, values=values, annotations=checked_annotations("", annotations, None))
    _check_room(tx.snapshot, changed)
    if changed == secret:
        return secret
    changed = tx.put(changed)
    rotated(tx, changed)
    return changed


def delete(tx: Transaction, request: pb.DeleteSecretRequest) -> Secret:
    """Deletes a secret and returns it. Raises FailedPrecondition if a resource is known to refer to it."""
    secret = present(tx, Secret, request.name, request.etag)
    if users := users_of(secret.name, tx.snapshot):
        raise FailedPrecondition(
            f"secret {secret.name!r} is referred to by {', '.join(users)}: have these refer to another one first",
            reason="IN_USE",
            metadata={"name": secret.name, "users": ",".join(users)},
        )
    tx.drop(SECRET, secret.name)
    return secret


def _kept_values(values: Any) -> dict[str, str]:
    values_now = checked_values("values", values)
    REDACTOR.add({value: HIDDEN for value in values_now.values() if value})
    return values_now


def _check_room(snapshot: Snapshot, new_secret: Secret) -> None:
    others = (resource for resource in snapshot.resources(SECRET).values() if resource.name != new_secret.name)
    total = sum(_size(other) for other in others) + _size(new_secret)
    if total > MAX_TOTAL_BYTES:
        raise Exhausted(
            f"values: all secrets together have {total} bytes with it: at most {MAX_TOTAL_BYTES} are allowed",
            reason="SECRETS_QUOTA",
        )


def _size(secret: Secret) -> int:
    return sum(len(key) + len(value.encode(errors="surrogatepass")) for key, value in secret.values.items())


class SecretApi(NounApi[NounParts], grpc.SecretServiceServicer):
    """Secrets."""

    noun = SECRET
    GetSecret, ListSecrets = get, list_page

    @writing()
    def CreateSecret(self, tx: Transaction, request: pb.CreateSecretRequest) -> Secret:
        """Stores a secret."""
        return create(tx, request)

    @writing()
    def UpdateSecret(self, tx: Transaction, request: pb.UpdateSecretRequest) -> Secret:
        """Changes a secret."""
        return update(tx, request)

    @writing()
    def DeleteSecret(self, tx: Transaction, request: pb.DeleteSecretRequest) -> Secret:
        """Deletes a secret."""
        return delete(tx, request)

    def _shown(self, secret: Secret, request: pb.GetSecretRequest) -> secret_pb2.Secret:
        return answered(secret, self._snapshot)

    def _in_list(self, secret: Secret, request: pb.ListSecretsRequest) -> secret_pb2.Secret:
        return secret_message(secret)

    def _fields(self, secret: Secret, tx: Transaction) -> dict[str, Any]:
        return {SECRET: answered(secret, tx.snapshot)}


API = SecretApi
