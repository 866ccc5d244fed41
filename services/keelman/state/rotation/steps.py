"""Replaces the CA of the installation while everything runs, in three steps.

First a new CA is made and trusted beside the present one; then it signs; then the former one is dropped. Before the
second and third step all members must have followed: else a member would refuse others, or be refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.model.cluster import ClusterGoal, ManagedBrokers
from keelman.model.errors import FailedPrecondition
from keelman.model.workload import SparkSpec, Workload, WorkloadKind
from keelman.runtime.logs.logging import get_logger
from keelman.state.clusters.broker_tls import CHAIN, TRUSTED, with_authorities
from keelman.state.clusters.goals import saved
from keelman.state.database.times import micros
from keelman.state.resources.snapshot import Snapshot
from keelman.state.resources.transaction import Transaction
from keelman.state.trust.authorities import (
    Authorities,
    AuthorityPhase,
    AuthorityRole,
    add_authority,
    authority_rows,
    opened_authorities,
)
from keelman.state.trust.rows import CertificateRow

log = get_logger()
MAX_NAMED = 5
BROKER = "broker/"


@dataclass(frozen=True, slots=True)
class Follower:
    """A member with a certificate, as node/n1, or a workload whose Kafka clients have one. `is_ready`: it has what the
    present phase gives. `issue_time`: microseconds since 1970 UTC, 0 for a workload."""

    name: str
    is_ready: bool
    issue_time: int = 0


async def followers_of(
    session: AsyncSession, snapshot: Snapshot, authorities: Authorities, now_micros: int
) -> list[Follower]:
    """Returns who has to follow a change of the CA: those whose certificate has not ended, and clients of brokers."""
    rows = (await session.exec(select(CertificateRow).order_by(col(CertificateRow.holder)))).all()
    with_brokers = {w.node for w in snapshot.workloads.values() if _shows_certificate(w)}
    members = [
        Follower(row.holder, _is_ready(row, authorities), row.issue_time)
        for row in rows
        if row.end_time > now_micros
        and (not row.holder.startswith(BROKER) or row.holder.removeprefix(BROKER) in with_brokers)
    ]
    return [*members, *_clients(snapshot, authorities)]


async def rotate(tx: Transaction, *, force: bool) -> Authorities:
    """Takes the next step, and returns the CAs after it. Raises FailedPrecondition while a member has not followed the
    step before, unless forced."""
    rows = {AuthorityRole(row.role): row for row in await authority_rows(tx.session)}
    present = opened_authorities(tx.session, rows.values())
    behind = [f.name for f in await followers_of(tx.session, tx.snapshot, present, micros(tx.now)) if not f.is_ready]
    if behind and not force and present.phase is not AuthorityPhase.STABLE:
        raise _behind(present, behind)
    match present.phase:
        case AuthorityPhase.STABLE:
            number = max(row.id for row in rows.values()) + 1
            add_authority(tx.session, number, AuthorityRole.NEXT, tx.now)
        case AuthorityPhase.INTRODUCED:
            rows[AuthorityRole.SIGNING].role = AuthorityRole.FORMER.value
            rows[AuthorityRole.NEXT].role = AuthorityRole.SIGNING.value
        case AuthorityPhase.REPLACED:
            await tx.session.delete(rows[AuthorityRole.FORMER])
    await tx.session.flush()
    after = opened_authorities(tx.session, await authority_rows(tx.session))
    _put_clients(tx, after)
    log.info("authority_rotated", phase=after.phase.value, signing=after.signing.digest, behind=",".join(behind))
    return after


def _shows_certificate(workload: Workload) -> bool:
    """Returns whether a workload shows the certificate of its node's brokers: drivers of Spark clusters do so too."""
    return workload.kind is WorkloadKind.BROKER or (isinstance(workload.spec, SparkSpec) and workload.spec.tls)


def _is_ready(row: CertificateRow, authorities: Authorities) -> bool:
    if authorities.phase is AuthorityPhase.INTRODUCED:
        return set(authorities.digests) <= set(row.trusted)
    return row.issuer == authorities.signing.digest


def _clients(snapshot: Snapshot, authorities: Authorities) -> Iterator[Follower]:
    """Yields the workloads with clients of managed brokers with TLS."""
    known = {digest.strip() for digest in authorities.pem.split("-----END CERTIFICATE-----") if digest.strip()}
    for workload in snapshot.workloads.values():
        found = [(key, value) for properties in _properties(workload) for key, value in properties.items()]
        trusted = [value for key, value in found if key.endswith(TRUSTED)]
        chains = [value for key, value in found if key.endswith(CHAIN)]
        ours = [value for value in trusted if any(text in value for text in known)]
        if ours:
            is_ready = all(text in value for value in ours for text in known)
            if authorities.phase is AuthorityPhase.REPLACED and authorities.other is not None:
                is_ready = is_ready and not any(authorities.other.pem.strip() in chain for chain in chains)
            yield Follower(workload.name, is_ready)


def _properties(workload: Workload) -> Iterator[Mapping[str, str]]:
    for name in ("properties", "reports_client_properties", "spark_client_properties"):
        properties = getattr(workload.spec, name, None)
        if isinstance(properties, Mapping):
            yield properties


def _put_clients(tx: Transaction, authorities: Authorities) -> None:
    """Gives the clients of managed brokers with TLS the CAs to trust, and certificates of the CA that signs."""
    for cluster in list(tx.snapshot.broker_clusters.values()):
        if not isinstance(cluster.spec, ManagedBrokers) or cluster.goal is ClusterGoal.DELETED:
            continue
        spec = with_authorities(cluster.spec, cluster.name, authorities, tx.now)
        if spec != cluster.spec:
            saved(tx, dataclasses.replace(cluster, spec=spec, generation=cluster.generation + 1))


def _behind(present: Authorities, behind: Sequence[str]) -> FailedPrecondition:
    named = ", ".join(behind[:MAX_NAMED]) + (f" and {len(behind) - MAX_NAMED} more" if len(behind) > MAX_NAMED else "")
    what = (
        "do not trust the new CA yet"
        if present.phase is AuthorityPhase.INTRODUCED
        else "have no certificate of the new CA yet"
    )
    return FailedPrecondition(
        f"the CA is not changed further: {named} {what}; members that run follow within a minute "
        "(`keelman authority show`); with --force those that do not run have to join again",
        reason="MEMBERS_BEHIND",
        metadata={"members": ",".join(behind[:MAX_NAMED]), "phase": present.phase.value},
    )
