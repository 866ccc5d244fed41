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
from keelman.state.nouns.parts import Parts
from keelman.state.resources.annotations import checked_annotations
from keelman.state.resources.checks import present
from keelman.state.resources.noun import Noun
from keelman.state.resources.serving import NounApi, get, list_page, verb
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
    made = secret_message(secret)
    made.users.extend(users_of(secret.name, snapshot))
    return made


def create(tx: Transaction, request: pb.CreateSecretRequest) -> Secret:
    """Stores a new secret."""
    checked_secret_name("name", request.name)
    if request.name in tx.snapshot.resources(SECRET):
        raise AlreadyExists(f"name: a secret named {request.name!r} exists already: choose another name")
    annotations = checked_annotations("", Annotations(request.description, dict(request.labels)), None)
    made = Secret(request.name, str(uuid.uuid4()), tx.now, tx.now, _kept_values(request.values), annotations)
    _check_room(tx.snapshot, made)
    return tx.put(made)


def update(tx: Transaction, request: pb.UpdateSecretRequest) -> Secret:
    """Changes the values, description or labels of the secret."""
    found = present(tx, Secret, request.name, request.etag)
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
    if changed == found:
        return found
    changed = tx.put(changed)
    rotated(tx, changed)
    return changed


def delete(tx: Transaction, request: pb.DeleteSecretRequest) -> Secret:
    """Deletes a secret and returns it. Raises FailedPrecondition if a resource is known to refer to it."""
    found = present(tx, Secret, request.name, request.etag)
    if users := users_of(found.name, tx.snapshot):
        raise FailedPrecondition(
            f"secret {found.name!r} is referred to by {', '.join(users)}: have these refer to another one first",
            reason="IN_USE",
            metadata={"name": found.name, "users": ",".join(users)},
        )
    tx.drop(SECRET, found.name)
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
            f"values: all secrets together have {total} bytes with it: at most {MAX_TOTAL_BYTES} are allowed",
            reason="SECRETS_QUOTA",
        )


def _size(secret: Secret) -> int:
    return sum(len(key) + len(value.encode(errors="surrogatepass")) for key, value in secret.values.items())


class SecretApi(NounApi[Parts], grpc.SecretServiceServicer):
    """Secrets."""

    noun = SECRET
    GetSecret, ListSecrets = get, list_page
    CreateSecret, UpdateSecret, DeleteSecret = verb(create), verb(update), verb(delete)

    def _shown(self, found: Secret, request: pb.GetSecretRequest) -> secret_pb2.Secret:
        return answered(found, self._snapshot)

    def _in_list(self, found: Secret, request: pb.ListSecretsRequest) -> secret_pb2.Secret:
        return secret_message(found)

    def _fields(self, made: Secret, tx: Transaction) -> dict[str, Any]:
        return {SECRET: answered(made, tx.snapshot)}


API = SecretApi
