"""Decides which managed broker clusters get TLS, and the certificates by which they and their clients trust each other.
Pure but for the keys that it makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta

from keelman.model.cluster import BrokerAccess, BrokerClusterSpec, BrokerTls, ManagedBrokers
from keelman.model.errors import InvalidArgument
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.server import is_loopback
from keelman.runtime.tls.certificates import certificate_request, issued_by, made_key
from keelman.state.kafka.access_rules import OTHER_RULES, reports_identity
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
    access = _decided_access(spec, tls)
    if tls is BrokerTls.NONE:
        return dataclasses.replace(spec, tls=tls, access=access)
    if authority is None:
        legal = (
            "NONE: the state service has no CA that could sign the brokers' certificates; with trust = installation, "
            "and no certificates of one's own, it has"
        )
        raise InvalidArgument.of("spec.managed.tls", tls.value, legal)
    client, reports = _trust(authority), dict[str, str]()
    if tls is BrokerTls.MUTUAL:
        client = identified(Identity(IdentityKind.CLIENT, name), authority, now)
    if access is BrokerAccess.RULES:
        reports = identified(reports_identity(name), authority, now)
    return dataclasses.replace(
        spec, tls=tls, client_properties=client, access=access, reports_client_properties=reports
    )


def with_authorities(spec: ManagedBrokers, name: str, authorities: Authorities, now: datetime) -> ManagedBrokers:
    """Returns the spec of a cluster whose clients trust these CAs, with a client's certificate of the CA that signs."""
    client = followed(spec.client_properties, Identity(IdentityKind.CLIENT, name), authorities, now)
    reports = followed(spec.reports_client_properties, reports_identity(name), authorities, now)
    return dataclasses.replace(spec, client_properties=client, reports_client_properties=reports)


def followed(
    properties: Mapping[str, str], holder: Identity, authorities: Authorities, now: datetime
) -> Mapping[str, str]:
    """Returns client properties that trust these CAs, with a certificate, if they have one, of the CA that signs; the
    same object if they do already."""
    if not properties:
        return properties
    chain = properties.get(CHAIN, "")
    if chain and not issued_by(chain.encode(), authorities.signing.pem.encode()):
        return identified(holder, authorities, now)
    return properties if properties[TRUSTED] == authorities.pem else {**properties, TRUSTED: authorities.pem}


def identified(holder: Identity, authority: Authority | Authorities, now: datetime) -> dict[str, str]:
    """Returns the properties of a client with a new key and certificate for a holder."""
    key = made_key()
    return {
        **_trust(authority),
        "ssl.keystore.type": "PEM",
        CHAIN: authority.sign(certificate_request(key), holder, (), now, CLIENT_LIFE),
        "ssl.keystore.key": key.decode(),
    }


def _trust(authority: Authority | Authorities) -> dict[str, str]:
    """Returns the properties of a client that trusts the CA, without a certificate."""
    return {"security.protocol": "SSL", "ssl.truststore.type": "PEM", TRUSTED: authority.pem}


def with_kept_tls(spec: BrokerClusterSpec, old: BrokerClusterSpec) -> BrokerClusterSpec:
    """Returns a changed spec with the former values of TLS that it leaves out, or cannot set."""
    if not (isinstance(spec, ManagedBrokers) and isinstance(old, ManagedBrokers)):
        return spec
    tls = old.tls if spec.tls is BrokerTls.UNSPECIFIED else spec.tls
    access = old.access if spec.access is BrokerAccess.UNSPECIFIED else spec.access
    return dataclasses.replace(
        spec,
        tls=tls,
        access=access,
        client_properties=old.client_properties,
        reports_client_properties=old.reports_client_properties,
    )


def _decided(spec: ManagedBrokers, snapshot: Snapshot, authority: Authority | Authorities | None) -> BrokerTls:
    if spec.tls is not BrokerTls.UNSPECIFIED:
        return spec.tls
    hosts = [snapshot.nodes[node].host for node in spec.nodes if node in snapshot.nodes]
    stays = all(host and is_loopback(host) for host in hosts)  # one without an address may get any
    return BrokerTls.NONE if authority is None or stays else BrokerTls.MUTUAL


def _decided_access(spec: ManagedBrokers, tls: BrokerTls) -> BrokerAccess:
    """Returns whether the brokers get access rules: if each client has a certificate, and the user has not arranged
    access otherwise. Raises InvalidArgument for rules that cannot be."""
    others = [key for key in OTHER_RULES if key in spec.properties]
    if spec.access is BrokerAccess.RULES and tls is not BrokerTls.MUTUAL:
        legal = f"OPEN with tls {tls.value}: access rules need clients with certificates, by tls = MUTUAL"
        raise InvalidArgument.of("spec.managed.access", spec.access.value, legal)
    if spec.access is BrokerAccess.RULES and others:
        legal = f"OPEN with {', '.join(others)} among spec.managed.properties: keelman sets these for access rules"
        raise InvalidArgument.of("spec.managed.access", spec.access.value, legal)
    if spec.access is not BrokerAccess.UNSPECIFIED:
        return spec.access
    return BrokerAccess.RULES if tls is BrokerTls.MUTUAL and not others else BrokerAccess.OPEN
