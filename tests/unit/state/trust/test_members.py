"""The CA of a database: tokens that expire, names that belong to keys, and a sealed private key."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from keelman.model.access.join_token import JoinRole
from keelman.model.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    KeelmanError,
    PermissionDenied,
    Unauthenticated,
)
from keelman.model.node import Node, NodeState
from keelman.rpc.identity import Identity, IdentityKind
from keelman.runtime.tls.certificates import certificate_facts, certificate_request, made_key
from keelman.state.secrets.sealed_rows import rekey_file
from keelman.state.trust.authority import key_digest_of
from keelman.state.trust.members import Members, open_members
from keelman.state.trust.rows import CertificateRow
from support.state.stores import open_store

LIFE = timedelta(days=30)
N1, G1 = Identity(IdentityKind.NODE, "n1"), Identity(IdentityKind.GATEWAY, "g1")
REQUEST, OTHER = certificate_request(made_key()), certificate_request(made_key())


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[Members]:
    async with open_store(str(tmp_path / "state.db")) as store:
        yield await open_members(store, LIFE)


def later(members: Members, time: timedelta) -> None:
    """Sets the clock of the database forward."""
    clock = members.store.database.clock
    members.store.database.clock = lambda: clock() + time


async def token(members: Members, role: JoinRole = JoinRole.NODE, member: str = "", seconds: float = 600) -> str:
    return (await members.create_token(role, member, seconds))[1]


async def refused(members: Members, text: str, holder: Identity = N1, request: str = REQUEST) -> KeelmanError:
    with pytest.raises(KeelmanError) as error:
        await members.join(text, holder, request, [])
    return error.value


async def test_a_token_ends_and_is_forgotten_later(members: Members) -> None:
    text = await token(members)
    later(members, timedelta(seconds=599))
    await members.join(text, N1, REQUEST, [])
    unused = await token(members)
    later(members, timedelta(seconds=601))
    error = await refused(members, unused, Identity(IdentityKind.NODE, "n2"))
    assert (type(error), error.reason) == (Unauthenticated, "TOKEN_EXPIRED")
    assert "and here it is" in error.message
    assert len(await members.tokens()) == 2
    later(members, timedelta(days=8))
    await token(members)
    assert len(await members.tokens()) == 1
    assert (await refused(members, unused)).reason == "TOKEN_UNKNOWN"


async def test_a_repeated_request_voids_the_token_that_it_made_first(members: Members) -> None:
    (row, first), (again, second) = [await members.create_token(JoinRole.NODE, "", 600, "r-1") for _ in range(2)]
    assert row.name == again.name
    assert len(await members.tokens()) == 1
    assert (await refused(members, first)).reason == "TOKEN_UNKNOWN"
    await members.join(second, N1, REQUEST, [])
    with pytest.raises(FailedPrecondition, match=f"{row.name}, was used by node 'n1'"):
        await members.create_token(JoinRole.NODE, "", 600, "r-1")
    await members.create_token(JoinRole.NODE, "", 600, "r-2")
    with pytest.raises(InvalidArgument, match=r"request_id: 'r-2' is not legal: a new id; .* for node \(any\)"):
        await members.create_token(JoinRole.GATEWAY, "", 600, "r-2")


@pytest.mark.parametrize("seconds", [0, 59, 31 * 86400, float("nan")])
async def test_how_long_a_token_may_be_good(members: Members, seconds: float) -> None:
    with pytest.raises(InvalidArgument, match=r"ttl: .* is not legal: 60 s to 30 days"):
        await members.create_token(JoinRole.NODE, "", seconds)


async def test_a_token_that_was_refused_is_not_used_up(members: Members) -> None:
    text = await token(members, member="n1")
    assert (await refused(members, text, Identity(IdentityKind.NODE, "n2"))).reason == "NOT_OF_TOKEN"
    assert (await refused(members, text, Identity(IdentityKind.GATEWAY, "n1"))).reason == "NOT_OF_TOKEN"
    with pytest.raises(InvalidArgument, match="hosts: "):
        await members.join(text, N1, REQUEST, ["state.keelman.internal"])
    await members.join(text, N1, REQUEST, [])
    assert (await refused(members, text, request=OTHER)).reason == "TOKEN_USED"


async def test_a_name_belongs_to_a_key(members: Members) -> None:
    await members.join(await token(members), N1, REQUEST, [])
    error = await refused(members, await token(members), request=OTHER)
    assert (type(error), error.reason) == (AlreadyExists, "NAME_TAKEN")
    assert "--node n1 to replace" in error.message
    await members.join(await token(members), N1, REQUEST, [])  # the same host again
    await members.join(await token(members, member="n1"), N1, OTHER, [])
    with pytest.raises(PermissionDenied, match="joined again on another host") as replaced:
        await members.check(N1, key_digest_of(REQUEST))
    assert replaced.value.reason == "CERTIFICATE_REPLACED"
    with pytest.raises(PermissionDenied, match="joined again on another host"):
        await members.renew(N1, key_digest_of(REQUEST), REQUEST, [])
    with pytest.raises(InvalidArgument, match="signed with another key"):
        await members.renew(N1, key_digest_of(OTHER), REQUEST, [])
    await members.check(N1, key_digest_of(OTHER))


async def test_a_name_whose_certificate_ended_is_free(members: Members) -> None:
    await members.join(await token(members), N1, REQUEST, [])
    later(members, LIFE)
    await members.join(await token(members), N1, OTHER, [])


async def test_the_name_of_a_node_that_is_offline_is_free_for_a_token_of_that_name_alone(members: Members) -> None:
    await members.join(await token(members), N1, REQUEST, [])
    async with members.store.write() as tx:
        tx.put(Node("n1", "n1", tx.now, tx.now, NodeState.OFFLINE, agent_address=""))
    for life in (timedelta(0), LIFE):
        later(members, life)
        error = await refused(members, await token(members), request=OTHER)
        assert (error.reason, "--node n1 to replace" in error.message) == ("NAME_TAKEN", True)
    await members.join(await token(members, member="n1"), N1, OTHER, [])


async def test_a_node_that_never_joined_keeps_its_name_while_it_is_offline(members: Members) -> None:
    async with members.store.write() as tx:
        tx.put(Node("n1", "n1", tx.now, tx.now, NodeState.OFFLINE, agent_address=""))
    error = await refused(members, await token(members))
    assert (error.reason, "OFFLINE: create the token with --node n1" in error.message) == ("NAME_TAKEN", True)
    await members.join(await token(members, member="n1"), N1, REQUEST, [])


async def test_a_node_that_is_expected_is_free_for_any_token_until_a_host_has_joined(members: Members) -> None:
    async with members.store.write() as tx:
        tx.put(Node("n1", "n1", tx.now, tx.now, NodeState.EXPECTED, agent_address=""))
    await members.join(await token(members), N1, REQUEST, [])
    assert (await refused(members, await token(members), request=OTHER)).reason == "NAME_TAKEN"


async def test_what_a_gateway_is_called_no_node_is(members: Members) -> None:
    await members.issue(G1, REQUEST, ["10.0.0.1", "kafka.example.org"])
    pem = await members.join(await token(members), N1, OTHER, ["10.0.0.1", "10.0.0.2", "kafka.example.org"])
    names = certificate_facts(pem.encode()).hosts
    assert names == ("n1.node.keelman.internal", "10.0.0.2")


async def test_the_agent_of_a_node_gets_its_brokers_a_certificate_that_is_not_its_own(members: Members) -> None:
    await members.issue(G1, certificate_request(made_key()), ["10.0.0.1"])
    await members.join(await token(members), N1, REQUEST, [])
    key = key_digest_of(REQUEST)
    hosts, own = ["10.0.0.1", "10.0.0.2"], "broker.keelman.internal"
    facts = certificate_facts((await members.of_brokers("n1", key, OTHER, hosts, asked_from="10.0.0.2")).encode())
    assert (facts.uris, facts.hosts) == (("keelman://broker/n1",), (own, "10.0.0.2"))
    beside = await members.of_brokers("n1", key, OTHER, hosts, asked_from="10.0.0.1")
    assert certificate_facts(beside.encode()).hosts == (own, *hosts), "the gateway is on its own host"
    with pytest.raises(InvalidArgument, match="the agent's own key"):
        await members.of_brokers("n1", key, REQUEST, [], asked_from="")
    with pytest.raises(PermissionDenied, match="known no more"):
        await members.of_brokers("n2", key, OTHER, [], asked_from="")


def hosts_of(pem: str) -> set[str]:
    """The hosts that a certificate names, without those that keelman adds."""
    return {host for host in certificate_facts(pem.encode()).hosts if not host.endswith(".keelman.internal")}


async def named(members: Members, node: str, hosts: list[str], asked_from: str = "") -> set[str]:
    """Issues a node's certificate and its brokers' certificate; returns the hosts in the latter."""
    own, brokers = certificate_request(made_key()), certificate_request(made_key())
    await members.issue(Identity(IdentityKind.NODE, node), own, [])
    pem = await members.of_brokers(node, key_digest_of(own), brokers, hosts, asked_from=asked_from)
    return hosts_of(pem)


async def test_loopback_is_everybodys(members: Members) -> None:
    hosts = ["localhost", "127.0.0.1", "::1"]
    await members.issue(G1, REQUEST, ["10.0.0.1", *hosts])
    await members.join(await token(members), N1, OTHER, hosts)
    assert await named(members, "n2", ["10.0.0.1", *hosts]) == {*hosts}


async def test_what_another_node_is_called_is_in_no_certificate_but_from_its_host(members: Members) -> None:
    n1 = await members.join(await token(members), N1, REQUEST, ["10.0.0.1"])
    assert hosts_of(n1) == {"10.0.0.1"}
    async with members.store.write() as tx:
        tx.put(Node("n3", "n3", tx.now, tx.now, NodeState.ONLINE, "10.0.0.3:7420", address="N3.Example.org"))
    hosts = ["10.0.0.1", "10.0.0.2", "n3.example.org"]
    assert await named(members, "n2", hosts) == {"10.0.0.2"}
    assert await named(members, "n2", hosts, "10.0.0.1") == {"10.0.0.1", "10.0.0.2"}, "both are on one host"
    assert await named(members, "n3", hosts) == {"10.0.0.2", "n3.example.org"}, "its own"
    key = key_digest_of(OTHER)
    n2 = await members.issue(Identity(IdentityKind.NODE, "n2"), OTHER, hosts)
    assert hosts_of(n2) == {"10.0.0.2"}
    n2 = await members.renew(Identity(IdentityKind.NODE, "n2"), key, OTHER, hosts, asked_from="10.0.0.1")
    assert hosts_of(n2) == {"10.0.0.1", "10.0.0.2"}
    later(members, LIFE)
    assert await named(members, "n4", hosts) == {"10.0.0.1", "10.0.0.2"}, "the certificates of n1 and n2 ended"


async def test_hosts_are_the_same_however_they_are_written(members: Members) -> None:
    await members.issue(G1, REQUEST, ["Kafka.Example.org.", "FD00:0::1"])
    async with members.store.write() as tx:
        row = CertificateRow(
            holder="gateway/g2", key_digest="x", hosts=["Old.Example.org."], issue_time=0, end_time=1
        )  # as an earlier version stored it
        tx.session.add(row)
    assert await named(members, "n1", ["kafka.example.ORG", "fd00::0001", "old.example.org", "n1."]) == {"n1"}
    assert await named(members, "n1", ["FD00::1"], "fd00::1") == {"fd00::1"}


async def test_the_private_key_is_sealed_and_goes_with_a_new_key_of_the_database(tmp_path: Path) -> None:
    database, key = tmp_path / "state.db", tmp_path / "secrets.key"
    async with open_store(str(database)) as store:
        first = await open_members(store, LIFE)
        again = await open_members(store, LIFE)
        assert first.authority.digest == again.authority.digest
        private = first.authority.key_pem
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"PRIVATE KEY" not in stored
    assert private.splitlines()[1].encode() not in stored
    assert await rekey_file(str(database), key) == 1
    async with open_store(str(database)) as store:
        after = await open_members(store, LIFE)
        assert (after.authority.digest, after.authority.key_pem) == (first.authority.digest, private)
