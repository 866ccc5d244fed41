"""Puts credential profiles into broker clusters: secrets whose keys are client properties, by which external brokers
know keelman."""

from __future__ import annotations

import dataclasses

from keelman.model.access.secret import Secret
from keelman.model.cluster import BrokerClusterSpec, ClusterGoal, ExternalBrokers
from keelman.model.errors import InvalidArgument, Violation
from keelman.model.rules.names import MAX_NAMED
from keelman.state.clusters.broker_checks import client_problems
from keelman.state.clusters.goals import saved
from keelman.state.kafka.properties import SECURITY, raise_all
from keelman.state.resources.snapshot import SECRET, Snapshot
from keelman.state.resources.transaction import Transaction

FIELD = "spec.external.credential_profile"


def with_credentials(spec: BrokerClusterSpec, snapshot: Snapshot) -> BrokerClusterSpec:
    """Returns the spec with the present values of its credential profile. Raises InvalidArgument for a missing secret,
    or if it has keys that are not client properties of authentication or trust."""
    if not isinstance(spec, ExternalBrokers):
        return spec
    if not spec.credential_profile:
        return dataclasses.replace(spec, credentials={})
    secret = snapshot.resources(SECRET).get(spec.credential_profile)
    if secret is None:
        names = ", ".join(sorted(snapshot.resources(SECRET))[:MAX_NAMED])
        raise InvalidArgument.of(FIELD, spec.credential_profile, f"an existing secret ({names or 'none exists yet'})")
    if wrong := _other_key(secret):
        legal = f"a secret of client properties that begin with {', '.join(SECURITY)}; it has {wrong!r}"
        raise InvalidArgument.of(FIELD, secret.name, legal)
    return dataclasses.replace(spec, credentials=dict(secret.values))


def rotated(tx: Transaction, secret: Secret) -> None:
    """Gives a changed secret's new values to the broker clusters that name it as profile. Raises InvalidArgument naming
    the value and the cluster if a value is illegal there."""
    for cluster in list(tx.snapshot.broker_clusters.values()):
        spec = cluster.spec
        if not isinstance(spec, ExternalBrokers) or spec.credential_profile != secret.name:
            continue
        if cluster.goal is ClusterGoal.DELETED:
            continue
        whose = f"credential profile of broker cluster {cluster.name}"
        if wrong := _other_key(secret):
            raise InvalidArgument.of(f"values.{wrong}", wrong, f"begins with {', '.join(SECURITY)}: {whose}")
        changed = dataclasses.replace(spec, credentials=dict(secret.values))
        if changed != spec:
            raise_all(_problems(changed, whose))
            saved(tx, dataclasses.replace(cluster, spec=changed, generation=cluster.generation + 1))


def _other_key(secret: Secret) -> str:
    """Returns the first key that is no client property of authentication or trust; empty for none."""
    return next((key for key in sorted(secret.values) if not key.startswith(SECURITY)), "")


def _problems(spec: ExternalBrokers, whose: str) -> list[Violation]:
    """Returns the problems of an update of a secret: of its values, or of the cluster's own properties beside them."""
    problems = []
    for problem in client_problems(spec):
        is_own = problem.field in spec.client_properties and problem.field not in spec.credentials
        name = "values" if is_own else f"values.{problem.field}"
        text = (
            f"values: spec.external.client_properties.{problem.description}"
            if is_own
            else f"values.{problem.description}"
        )
        problems.append(Violation(name, f"{text} ({whose})"))
    return problems
