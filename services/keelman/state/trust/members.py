"""Decides which hosts the installation's CA lets join, and which certificates a member's name belongs to."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.model.access.join_token import JoinRole, JoinSecret, parsed_token
from keelman.model.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
)
from keelman.model.node import NodeState
from keelman.model.rules.names import checked_name
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.server import is_loopback
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.tls.certificates import normal_host, shown_time
from keelman.state.database.times import micros, moment
from keelman.state.resources.snapshot import Snapshot
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction
from keelman.state.trust.authorities import (
    AuthorityRole,
    PresentAuthorities,
    add_authority,
    authority_rows,
    marks_of,
    opened_authorities,
)
from keelman.state.trust.authority import Authority, checked_hosts, key_digest_of
from keelman.state.trust.rows import CertificateRow, JoinTokenRow

log = get_logger()
MIN_TTL, DEFAULT_TTL, MAX_TTL = 60.0, 3600.0, 30 * 86400.0
KEPT = timedelta(days=7)
"""How long a token is kept after its end, so that a refusal can tell whether it was used or has ended."""
GONE = frozenset({NodeState.OFFLINE, NodeState.EXPECTED})
"""States of a node whose name another host may take, with a token for that name if a host joined by it before."""


@dataclass(frozen=True, slots=True)
class Members:
    """The CA's work. `life` is that of the certificates that it signs."""

    store: ResourceStore
    present: PresentAuthorities
    life: timedelta

    @property
    def authority(self) -> Authority:
        """The CA that signs."""
        return self.present.value.signing

    async def follow(self) -> bool:
        """Reads the CAs again if another process has changed them; returns whether they are others now."""
        async with self.store.database.read() as session:
            rows = await authority_rows(session)
            marks = marks_of(rows)
            if marks == self.present.marks:
                return False
            self.present.value, self.present.marks = opened_authorities(session, rows), marks
        log.info("authority_read", phase=self.present.value.phase.value, digest=self.authority.digest)
        return True

    async def create_token(
        self, role: JoinRole, member: str, seconds: float, request_id: str = ""
    ) -> tuple[JoinTokenRow, str]:
        """Creates a token; returns its row, and the token. A second call with a request id voids the token of the
        first, whose secret may have reached no one. Raises InvalidArgument, and FailedPrecondition if that token was
        used."""
        if member:
            checked_name("member", member)
        if not MIN_TTL <= seconds <= MAX_TTL:
            raise InvalidArgument.of("ttl", f"{seconds:g}s", f"{MIN_TTL:g} s to {MAX_TTL / 86400:g} days")
        name = _digest(f"request {request_id}")[:16] if request_id else secrets.token_hex(4)
        token = JoinSecret(name, secrets.token_urlsafe(24), self.authority.digest)
        async with self.store.write() as tx:
            await _forget_old(tx)
            if request_id and (first := await tx.session.get(JoinTokenRow, name)) is not None:
                if (first.role, first.member) != (role.value, member):
                    legal = f"a new id; this one made token {name}, for {first.role} {first.member or '(any)'}"
                    raise InvalidArgument.of("request_id", request_id, legal)
                if first.use_time:
                    text = f"request_id: the token of this request, {name}, was used by {first.role} {first.used_by!r}"
                    raise FailedPrecondition(text, reason="TOKEN_USED", metadata={"join_token": name})
                await tx.session.delete(first)
                await tx.session.flush()
            row = JoinTokenRow(
                name=token.name, secret_digest=_digest(token.secret), role=role.value, member=member,
                create_time=micros(tx.now), expire_time=micros(tx.now + timedelta(seconds=seconds)),
                use_time=0, used_by="", used_key="",
            )  # fmt: skip
            tx.session.add(row)
            await tx.session.flush()
            tx.session.expunge(row)
        log.info("join_token_created", token=row.name, role=row.role, member=row.member)
        return row, token.text

    async def tokens(self) -> Sequence[JoinTokenRow]:
        """Returns the tokens that can be used, and those used or ended of late, by name."""
        async with self.store.database.read() as session:
            return (await session.exec(select(JoinTokenRow).order_by(col(JoinTokenRow.name)))).all()

    async def delete_token(self, tx: Transaction, name: str) -> JoinTokenRow:
        """Deletes a token and returns its row. Raises NotFound."""
        row = await tx.session.get(JoinTokenRow, name)
        if row is None:
            raise NotFound(f"no join token {name!r}", metadata={"join_token": name})
        await tx.session.delete(row)
        await tx.session.flush()
        return row

    async def join(self, token: str, holder: Identity, request: str, hosts: Sequence[str]) -> str:
        """Returns the certificate of a joining host, in PEM. A host that did not get the answer may call again with its
        key.

        Raises Unauthenticated, PermissionDenied, AlreadyExists and InvalidArgument.
        """
        secret = parsed_token(token)
        try:
            await self._check_known(secret)  # first: a stranger is never shown its own words, which may be guesses
            name = checked_name("name", holder.name)
            hosts, key = checked_hosts(hosts), key_digest_of(request)
            async with self.store.write() as tx:
                row = await self._usable(tx, secret, key)
                if row.role != holder.kind or row.member not in ("", name):
                    whom = f"{row.role} {row.member!r}" if row.member else f"a {row.role}"
                    raise PermissionDenied(
                        f"join token {row.name} lets {whom} join, and not {holder}",
                        reason="NOT_OF_TOKEN",
                        metadata={"role": row.role, "member": row.member},
                    )
                await self._check_free(tx, holder, key, is_named=bool(row.member))
                row.use_time, row.used_by, row.used_key = micros(tx.now), name, key
                return await self._signed(tx, holder, request, key, hosts)
        except (Unauthenticated, PermissionDenied, AlreadyExists) as error:
            log.warning("join_refused", token=secret.name, name=holder.path, reason=error.reason, error=error.message)
            raise

    async def renew(
        self, holder: Identity, key: str, request: str, hosts: Sequence[str], *, asked_from: str = ""
    ) -> str:
        """Returns a new certificate for a member whose present one has this key. Raises PermissionDenied,
        InvalidArgument."""
        if key_digest_of(request) != key:
            raise InvalidArgument("certificate_request: it is signed with another key than that of the certificate")
        hosts = checked_hosts(hosts)
        async with self.store.write() as tx:
            await check_holder(tx.session, holder, key)
            return await self._signed(tx, holder, request, key, hosts, asked_from=asked_from)

    async def issue(self, holder: Identity, request: str, hosts: Sequence[str]) -> str:
        """Returns the certificate of a member identified by other means, whichever holder the name had before."""
        checked_name("name", holder.name)
        hosts, key = checked_hosts(hosts), key_digest_of(request)
        async with self.store.write() as tx:
            return await self._signed(tx, holder, request, key, hosts)

    async def of_brokers(self, node: str, key: str, request: str, hosts: Sequence[str], *, asked_from: str) -> str:
        """Returns the certificate of a node's brokers, for its agent, whose own certificate has the key of this digest.
        It does not allow calls of any service.

        It names hosts of a gateway or another node only if they are loopback, or the address that the agent calls from:
        they may be on one host. Raises PermissionDenied, InvalidArgument.
        """
        if key_digest_of(request) == key:
            raise InvalidArgument("certificate_request: it is signed with the agent's own key, which brokers never get")
        hosts, now = checked_hosts(hosts), self.store.database.clock()
        await self.store.catch_up()
        async with self.store.database.read() as session:
            await check_holder(session, Identity(IdentityKind.NODE, node), key)
            hosts = await _own_hosts(session, self.store.snapshot, node, hosts, asked_from=asked_from, now=now)
        async with self.store.write() as tx:
            return await self._noted(tx, Identity(IdentityKind.BROKER, node), request, key_digest_of(request), hosts)

    async def check(self, holder: Identity, key: str) -> None:
        """Raises PermissionDenied for a certificate that no longer has this name."""
        async with self.store.database.read() as session:
            await check_holder(session, holder, key)

    async def _check_known(self, join_secret: JoinSecret) -> None:
        async with self.store.database.read() as session:
            _known(await session.get(JoinTokenRow, join_secret.name), join_secret)

    async def _usable(self, tx: Transaction, join_secret: JoinSecret, key: str) -> JoinTokenRow:
        row = _known(await tx.session.get(JoinTokenRow, join_secret.name), join_secret)
        if row.use_time and row.used_key != key:
            raise Unauthenticated(
                f"join token {row.name} was used at {shown_time(moment(row.use_time))} by {row.role} {row.used_by!r}: "
                "create another with `keelman node token create`",
                reason="TOKEN_USED",
                metadata={"used_by": row.used_by},
            )
        if row.expire_time <= micros(tx.now):
            raise Unauthenticated(
                f"join token {row.name} ended at {shown_time(moment(row.expire_time))}, and here it is "
                f"{shown_time(tx.now)}: create another with `keelman node token create`",
                reason="TOKEN_EXPIRED",
            )
        return row

    async def _check_free(self, tx: Transaction, holder: Identity, key: str, *, is_named: bool) -> None:
        """Raises AlreadyExists if another member has the name."""
        row = await tx.session.get(CertificateRow, holder.path)
        if row is not None and row.key_digest == key:
            return
        node = tx.snapshot.nodes.get(holder.name) if holder.kind is IdentityKind.NODE else None
        if node is not None and node.state not in GONE:
            raise _taken(holder, f"its agent is {node.state}: stop that one first, or join by another name (--node)")
        if is_named:
            return
        created = f"--node {holder.name}" + (" --as-gateway" if holder.kind is IdentityKind.GATEWAY else "")
        if row is not None and (node is not None or row.end_time > micros(tx.now)):
            raise _taken(holder, f"another host joined by it: create the token with {created} to replace that one")
        if node is not None and node.state is NodeState.OFFLINE:  # it never joined, e.g. before there was a CA
            raise _taken(
                holder, f"it is that of a node which is OFFLINE: create the token with {created} to replace it"
            )

    async def _signed(
        self, tx: Transaction, holder: Identity, request: str, key: str, hosts: Sequence[str], *, asked_from: str = ""
    ) -> str:
        if holder.kind is IdentityKind.NODE:
            hosts = await _own_hosts(tx.session, tx.snapshot, holder.name, hosts, asked_from=asked_from, now=tx.now)
        return await self._noted(tx, holder, request, key, hosts)

    async def _noted(self, tx: Transaction, holder: Identity, request: str, key: str, hosts: Sequence[str]) -> str:
        """Returns a certificate, and notes its holder, its CA, and the CAs that the holder is given to trust."""
        row = CertificateRow(
            holder=holder.path, key_digest=key, hosts=list(hosts), issue_time=micros(tx.now),
            end_time=micros(tx.now + self.life), issuer=self.authority.digest, trusted=self.present.value.digests,
        )  # fmt: skip
        await tx.session.merge(row)
        await tx.session.flush()
        return self._sign(holder, request, hosts, tx.now)

    def _sign(self, holder: Identity, request: str, hosts: Sequence[str], now: datetime) -> str:
        certificate = self.authority.sign(request, holder, hosts, now, self.life)
        log.info("certificate_signed", holder=holder.path, hosts=",".join(hosts), end=shown_time(now + self.life))
        return certificate


async def open_members(store: ResourceStore, life: timedelta) -> Members:
    """Opens the CA of a database; makes it at the first start."""
    async with store.write() as tx:
        rows = await authority_rows(tx.session)
        if not rows:
            made = add_authority(tx.session, 1, AuthorityRole.SIGNING, tx.now)
            await tx.session.flush()
            log.info("authority_made", digest=made.digest)
            rows = await authority_rows(tx.session)
        return Members(store, PresentAuthorities(opened_authorities(tx.session, rows), marks_of(rows)), life)


async def check_holder(session: AsyncSession, holder: Identity, key: str) -> None:
    """Raises PermissionDenied if a member's name does not belong to the certificates of a public key."""
    row = await session.get(CertificateRow, holder.path)
    if row is None:
        raise PermissionDenied(
            f"the certificate of {holder} is known no more: it was deleted here; join again",
            reason="CERTIFICATE_UNKNOWN",
        )
    if row.key_digest != key:
        raise PermissionDenied(
            f"{holder} joined again on another host at {shown_time(moment(row.issue_time))}, and its name belongs to "
            "that one's certificate now",
            reason="CERTIFICATE_REPLACED",
        )


def refused_members() -> FailedPrecondition:
    """Returns the error for an installation without a CA."""
    return FailedPrecondition(
        "the state service has no CA to let hosts join: it runs without trust = installation, or with certificates of "
        "one's own",
        reason="NO_AUTHORITY",
    )


async def _own_hosts(
    session: AsyncSession, snapshot: Snapshot, node: str, hosts: Sequence[str], *, asked_from: str, now: datetime
) -> list[str]:
    """Returns the hosts that certificates of a node may name: none of a gateway or another node, except loopback and
    the address that the node calls from."""
    own = Identity(IdentityKind.NODE, node).path
    rows = (await session.exec(select(CertificateRow))).all()
    others = [row for row in rows if row.holder != own and not row.holder.startswith("broker/")]
    taken = {other_node.host for other_node in snapshot.nodes.values() if other_node.name != node}
    for other in others:
        if not other.holder.startswith("node/") or other.end_time > micros(now):
            taken |= {*other.hosts}
    taken = {normal_host(host) for host in taken}
    return [host for host in hosts if host not in taken or is_loopback(host) or host == normal_host(asked_from)]


def _known(row: JoinTokenRow | None, join_secret: JoinSecret) -> JoinTokenRow:
    """Returns the row of a token. Raises Unauthenticated for an unknown token."""
    if row is None or not hmac.compare_digest(row.secret_digest, _digest(join_secret.secret)):
        raise Unauthenticated(
            "the join token is unknown: it is mistyped, was deleted, or has expired; create another with "
            "`keelman node token create`",
            reason="TOKEN_UNKNOWN",
        )
    return row


async def _forget_old(tx: Transaction) -> None:
    old = micros(tx.now - KEPT)
    connection = await tx.session.connection()
    await connection.execute(sa.delete(JoinTokenRow).where(col(JoinTokenRow.expire_time) < old))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _taken(holder: Identity, reason: str) -> AlreadyExists:
    return AlreadyExists(
        f"the name of {holder} is taken: {reason}", reason="NAME_TAKEN", metadata={"name": holder.name}
    )
