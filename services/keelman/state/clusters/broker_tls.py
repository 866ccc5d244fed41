"""Decides which managed broker clusters get TLS, and the certificates by which they and their clients trust each other.
Pure but for the keys that it makes."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from keelman.model.cluster import BrokerClusterSpec, BrokerTls, ManagedBrokers
from keelman.model.errors import InvalidArgument
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.server import is_loopback
from keelman.runtime.tls.certificates import certificate_request, issued_by, made_key
from keelman.state.resources.snapshot import Snapshot
from keelman.state.trust.authorities import Authorities
from keelman.state.trust.authority import AUTHORITY_YEARS, Authority

TRUSTED, CHAIN = "ssl.truststore.certificates", "ssl.keystore.certificate.chain"
CLIENT_LIFE = timedelta(days=365 * AUTHORITY_YEARS)
"""A client's certificate is valid as long as the CA: it is in the properties of processes that run for long."""


def with_tls(
    spec: BrokerClusterSpec, name: str, snapshot: Snapshot, authority: Authority | Authorities | None, now: datetime
) -> BrokerClusterSpec:
    """Returns the spec of a new cluster with its TLS decided, and its clients' properties. `authority` has the
    installation's CA. Raises InvalidArgument for TLS without one."""
    if not isinstance(spec, ManagedBrokers):
        return spec
    tls = _decided(spec, snapshot, authority)
    if tls is BrokerTls.NONE:
        return dataclasses.replace(spec, tls=tls)
    if authority is None:
        legal = (
            "NONE: the state service has no CA that could sign the brokers' certificates; with trust = installation, "
            "and no certificates of one's own, it has"
        )
        raise InvalidArgument.of("spec.managed.tls", tls.value, legal)
    client = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", TRUSTED: authority.pem}
    if tls is BrokerTls.MUTUAL:
        client |= _identity(name, authority, now)
    return dataclasses.replace(spec, tls=tls, client_properties=client)


def with_authorities(spec: ManagedBrokers, name: str, authorities: Authorities, now: datetime) -> ManagedBrokers:
    """Returns the spec of a cluster whose clients trust these CAs, with a client's certificate of the CA that signs."""
    if not spec.client_properties:
        return spec
    client = {**spec.client_properties, TRUSTED: authorities.pem}
    if CHAIN in client and not issued_by(client[CHAIN].encode(), authorities.signing.pem.encode()):
        client |= _identity(name, authorities, now)
    return dataclasses.replace(spec, client_properties=client)


def _identity(name: str, authority: Authority | Authorities, now: datetime) -> dict[str, str]:
    """Returns the properties of a client's new key and certificate."""
    key, holder = made_key(), Identity(IdentityKind.CLIENT, name)
    return {
        "ssl.keystore.type": "PEM",
        CHAIN: authority.sign(certificate_request(key), holder, (), now, CLIENT_LIFE),
        "ssl.keystore.key": key.decode(),
    }


def with_kept_tls(spec: BrokerClusterSpec, old: BrokerClusterSpec) -> BrokerClusterSpec:
    """Returns a changed spec with the former values of TLS that it leaves out, or cannot set."""
    if not (isinstance(spec, ManagedBrokers) and isinstance(old, ManagedBrokers)):
        return spec
    tls = old.tls if spec.tls is BrokerTls.UNSPECIFIED else spec.tls
    return dataclasses.replace(spec, tls=tls, client_properties=old.client_properties)


def _decided(spec: ManagedBrokers, snapshot: Snapshot, authority: Authority | Authorities | None) -> BrokerTls:
    if spec.tls is not BrokerTls.UNSPECIFIED:
        return spec.tls
    hosts = [snapshot.nodes[node].host for node in spec.nodes if node in snapshot.nodes]
    stays = all(host and is_loopback(host) for host in hosts)  # one without an address may get any
    return BrokerTls.NONE if authority is None or stays else BrokerTls.MUTUAL
