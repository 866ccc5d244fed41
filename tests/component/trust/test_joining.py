"""Hosts that join with a token, agents that run with the resulting certificates, and refusals.

A refusal gives its reason on both sides.
"""

import sqlite3
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keelman.api.access.v1.join_service_pb2 import JoinRequest
from keelman.api.access.v1.join_token_pb2 import JOIN_ROLE_GATEWAY
from keelman.api.access.v1.join_token_service_pb2 import DeleteJoinTokenRequest, ListJoinTokensRequest
from keelman.api.connect.v1.secret_service_pb2 import ListSecretsRequest
from keelman.api.node.v1.agent_service_pb2 import ListLocalWorkloadsRequest, StreamLogsRequest
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.node_service_pb2 import DeleteNodeRequest, ListNodesRequest
from keelman.api.node.v1.session_service_pb2 import OpenSessionRequest, Registration
from keelman.api.node.v1.session_service_pb2_grpc import SessionServiceStub
from keelman.model.access.join_token import JoinRole, parsed_token
from keelman.model.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    KeelmanError,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from keelman.rpc.channels import Channel, channel
from keelman.rpc.credentials import Pems
from keelman.rpc.errors import translated, translated_stream
from keelman.rpc.generated import stub_of
from keelman.rpc.handshake import handshake_problem
from keelman.rpc.identity import STATE_NAME, Identity, IdentityKind, server_name
from keelman.rpc.membership import MemberFolder
from keelman.runtime.home import Home
from keelman.runtime.main import file_in_home
from keelman.runtime.tls.certificates import certificate_facts, certificate_request, made_key
from keelman.state.database.key_source import read_keys
from keelman.state.database.sealing import Sealer
from keelman.state.trust.authority import Authority
from support.eventually import eventually
from support.state.trust import Installation, installation

pytestmark = pytest.mark.component
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
async def trust_system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installation(tmp_path_factory.mktemp("trust")) as actual_installation:
        yield actual_installation


def credentials(home: Any, holder: Identity) -> Pems:
    return MemberFolder(home.member(holder.kind)).read(holder)


def node(name: str) -> Identity:
    return Identity(IdentityKind.NODE, name)


def to_state(installed: Installation, pems: Pems) -> Channel:
    return channel(installed.state, root_certificates=pems.roots, client=pems, server_name=STATE_NAME, peer="state")


async def opened(link: Channel, name: str) -> None:
    """Returns when a session of a node was welcomed. Raises the refusal."""

    registration = Registration(node=name, agent_address="127.0.0.1:7420")
    async with link as connection:
        call: Any = SessionServiceStub(connection).OpenSession()
        with translated(peer="state"):
            await call.write(OpenSessionRequest(registration=registration))
            message = await call.read()
        assert message.WhichOneof("message") == "welcome"
        call.cancel()


async def test_a_host_joins_and_its_agent_runs(trust_system: Installation) -> None:
    lines = await trust_system.join("n1")
    home = trust_system.homes["n1"]
    key = home.member("node") / "key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert lines[0].startswith("node/n1 joined: its certificate is good until 20")
    assert certificate_facts((key.parent / "certificate.pem").read_bytes()).uris == ("keelman://node/n1",)
    assert home.settings_file("agent").read_text().endswith('trust = "installation"\n')
    async with trust_system.agent("n1") as agent:
        await trust_system.online("n1")
        address = (await trust_system.nodes())["n1"].status.agent_address
        port = int(address.rpartition(":")[2])
        await asked_by_others(trust_system, f"127.0.0.1:{port}")
        assert not agent.done()


async def asked_by_others(installed: Installation, address: str) -> None:
    """The agent's own server answers gateways, and no other node."""
    await installed.join("asking")
    pems = credentials(installed.homes["asking"], node("asking"))
    name = server_name(node("n1"))
    async with channel(address, root_certificates=pems.roots, client=pems, server_name=name) as link:
        with pytest.raises(PermissionDenied, match=r"node 'asking' may not call .* of an agent") as refused:
            await AgentServiceStub(link).ListLocalWorkloads(ListLocalWorkloadsRequest(), timeout=300)
    assert refused.value.reason == "NOT_ALLOWED"
    await installed.join("g", token=await installed.token(role=JOIN_ROLE_GATEWAY), role=JoinRole.GATEWAY)
    pems = credentials(installed.homes["g"], Identity(IdentityKind.GATEWAY, "g"))
    async with channel(address, root_certificates=pems.roots, client=pems, server_name=name) as link:
        assert not (await AgentServiceStub(link).ListLocalWorkloads(ListLocalWorkloadsRequest(), timeout=300)).workloads


async def test_agents_may_ask_state_for_what_is_theirs_alone(trust_system: Installation) -> None:
    await trust_system.join("own")
    pems = credentials(trust_system.homes["own"], node("own"))
    async with to_state(trust_system, pems) as link:
        with pytest.raises(PermissionDenied, match=r"node 'own' may not call .*ListSecrets of the state service"):
            await stub_of(link, "connect", "secret").ListSecrets(ListSecretsRequest(), timeout=300)
    with pytest.raises(
        PermissionDenied, match="'other' is not the node of the certificate, which is of node 'own'"
    ) as e:
        await opened(to_state(trust_system, pems), "other")
    assert e.value.reason == "NOT_OWN_NAME"
    await opened(to_state(trust_system, pems), "own")
    await trust_system.join("gw", token=await trust_system.token(role=JOIN_ROLE_GATEWAY), role=JoinRole.GATEWAY)
    pems = credentials(trust_system.homes["gw"], Identity(IdentityKind.GATEWAY, "gw"))
    with pytest.raises(PermissionDenied, match=r"gateway 'gw' may not call .*OpenSession"):
        await opened(to_state(trust_system, pems), "gw")
    async with to_state(trust_system, pems) as link:
        await stub_of(link, "connect", "secret").ListSecrets(ListSecretsRequest(), timeout=300)


Case = Callable[[Installation], Awaitable[str]]


async def wrong(installed: Installation) -> str:
    token = parsed_token(await installed.token())
    return token.text.replace(token.secret, "x" * len(token.secret))


async def unknown(installed: Installation) -> str:
    token = parsed_token(await installed.token())
    return token.text.replace(f".{token.name}.", ".00000000.")


async def of_another_installation(installed: Installation) -> str:
    token = parsed_token(await installed.token())
    return token.text.replace(token.authority, "0" * 64)


async def used(installed: Installation) -> str:
    token = await installed.token()
    await installed.join("first", token=token)
    return token


async def of_another_node(installed: Installation) -> str:
    return await installed.token(member="somebody")


async def cut_off(installed: Installation) -> str:
    return (await installed.token())[:-1]


@pytest.mark.parametrize(
    ("case", "error", "reason", "text"),
    [
        (wrong, Unauthenticated, "TOKEN_UNKNOWN", "the join token is unknown"),
        (unknown, Unauthenticated, "TOKEN_UNKNOWN", "the join token is unknown"),
        (used, Unauthenticated, "TOKEN_USED", r"was used at .* UTC by node 'first'"),
        (of_another_node, PermissionDenied, "NOT_OF_TOKEN", "lets node 'somebody' join, and not node 'refused'"),
        (of_another_installation, FailedPrecondition, "OTHER_AUTHORITY", "does not show the CA of the token"),
        (cut_off, InvalidArgument, "INVALID_ARGUMENT", "token: '.hidden.' is not legal"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_bad_token_lets_nobody_join(
    trust_system: Installation, capsys: pytest.CaptureFixture[str], *, case: Case, error: type[KeelmanError],
    reason: str, text: str,
) -> None:  # fmt: skip
    token = await case(trust_system)
    with pytest.raises(error, match=text) as refused:
        await trust_system.join("refused", token=token)
    assert refused.value.reason == reason
    if reason in ("TOKEN_UNKNOWN", "TOKEN_USED", "NOT_OF_TOKEN"):
        assert f"reason={reason}" in capsys.readouterr().out.replace("\x1b[0m", "")
    assert not trust_system.homes["refused"].settings_file("agent").exists(), "nothing is left that would start"


@pytest.mark.parametrize("field", ["name", "certificate_request", "hosts"])
async def test_a_stranger_is_not_shown_its_own_words(trust_system: Installation, field: str) -> None:
    """An answer hides the secrets of the service: an answer that repeated a guess would tell whether it is a secret."""
    guess = "my guess!"
    request = JoinRequest(token=await unknown(trust_system), role=JOIN_ROLE_GATEWAY, name="n", certificate_request="-")
    if field == "hosts":
        request.hosts.append(guess)
    else:
        setattr(request, field, guess)
    with pytest.raises(Unauthenticated) as refused:
        await stub_of(trust_system.to_gateway, "access", "join").Join(request)
    assert refused.value.reason == "TOKEN_UNKNOWN"
    assert guess not in refused.value.message


async def test_a_token_ends(trust_system: Installation) -> None:
    with pytest.raises(InvalidArgument, match=r"ttl: '1s' is not legal: 60 s to 30 days"):
        await trust_system.token(ttl=1)


async def test_who_did_not_hear_the_answer_joins_again_with_the_same_key(trust_system: Installation) -> None:
    token = await trust_system.token()
    await trust_system.join("deaf", token=token)
    await trust_system.join("deaf", token=token)


async def test_a_name_that_is_taken_lets_nobody_else_join(trust_system: Installation) -> None:
    await trust_system.join("taken")
    with pytest.raises(AlreadyExists, match="the name of node 'taken' is taken: another host joined by it"):
        await trust_system.join("thief", as_name="taken")
    async with trust_system.agent("taken"):
        await trust_system.online("taken")
        for token in (await trust_system.token(), await trust_system.token(member="taken")):
            with pytest.raises(AlreadyExists, match=r"is taken: its agent is ONLINE: stop that one first") as refused:
                await trust_system.join("thief", token=token, as_name="taken")
        assert refused.value.reason == "NAME_TAKEN"

    async def is_gone() -> bool:
        with pytest.raises(AlreadyExists) as refused:
            await trust_system.join("thief", as_name="taken")
        return "create the token with --node taken to replace that one" in refused.value.message

    await eventually(is_gone, every=0.5, what="the node is known to be gone")
    await trust_system.join("thief", token=await trust_system.token(member="taken"), as_name="taken")
    with pytest.raises(PermissionDenied, match=r"node 'taken' joined again on another host") as replaced:
        await opened(to_state(trust_system, credentials(trust_system.homes["taken"], node("taken"))), "taken")
    assert replaced.value.reason == "CERTIFICATE_REPLACED"
    await opened(to_state(trust_system, credentials(trust_system.homes["thief"], node("taken"))), "taken")


def signed(authority: Authority, holder: Identity, begin: timedelta, life: timedelta) -> Pems:
    key = made_key()
    chain = authority.sign(certificate_request(key), holder, (), datetime.now(UTC) + begin, life)
    return Pems(chain.encode(), key, authority.pem.encode())


async def of_installation(installed: Installation) -> Authority:
    """The CA with its key, which only the database and the key file have."""
    connection = sqlite3.connect(installed.state_home.database)
    certificate, sealed = connection.execute("SELECT certificate, secret FROM authority").fetchone()
    connection.close()
    sealer = Sealer(read_keys(installed.state_home.secrets_key)[0], installed.state_home.secrets_key)
    assert "PRIVATE KEY" not in sealed
    return Authority.of(certificate, sealer.open({"secret": sealed}, "authority")["secret"])


async def test_certificates_that_tls_refuses_are_explained(
    trust_system: Installation, capfd: pytest.CaptureFixture[str]
) -> None:
    await trust_system.join("tls")
    own = credentials(trust_system.homes["tls"], node("tls"))
    other = signed(Authority.made(datetime.now(UTC)), node("tls"), timedelta(), HOUR)
    for shown, exact_reason in (
        (Pems(other.chain, other.key, own.roots), "it does not trust the CA of this process's certificate"),
        (Pems(roots=own.roots), "it requires a client certificate, and this process has none: join first"),
        (Pems(own.chain, own.key, other.roots), "its certificate is of another CA than the trusted one"),
    ):
        with pytest.raises(Unavailable):
            await opened(to_state(trust_system, shown), "tls")
        assert await handshake_problem(trust_system.state, shown, STATE_NAME) == exact_reason
    authority = await of_installation(trust_system)
    for begin, life in ((-2 * HOUR, HOUR), (HOUR, HOUR)):
        shown = signed(authority, node("tls"), begin, life)
        with pytest.raises(Unavailable):
            await opened(to_state(trust_system, shown), "tls")
        assert "check the clock, or join again" in await handshake_problem(trust_system.state, shown, STATE_NAME)
    assert await handshake_problem(trust_system.state, own, STATE_NAME) == ""
    assert "is of another host" in await handshake_problem(trust_system.state, own, server_name(node("tls")))
    printed = capfd.readouterr().err  # grpc itself writes it to the log of the state service
    for reason in (
        "certificate has expired", "certificate is not yet valid", "self signed certificate in certificate chain",
        "PEER_DID_NOT_RETURN_A_CERTIFICATE",
    ):  # fmt: skip
        assert reason in printed


async def test_a_node_that_is_deleted_is_let_in_no_more(trust_system: Installation) -> None:
    await trust_system.join("gone")
    async with trust_system.agent("gone"):
        await trust_system.online("gone")
    nodes = stub_of(trust_system.to_gateway, "node", "node")

    async def deleted() -> bool:
        try:
            await nodes.DeleteNode(DeleteNodeRequest(name="gone"))
        except FailedPrecondition as error:
            raise AssertionError(error.message) from error
        return True

    await eventually(deleted, every=0.3, what="the node is offline")
    with pytest.raises(PermissionDenied, match="is known no more") as refused:
        await opened(to_state(trust_system, credentials(trust_system.homes["gone"], node("gone"))), "gone")
    assert refused.value.reason == "CERTIFICATE_UNKNOWN"
    await trust_system.join("gone")


async def test_the_settings_of_joining_are_read_without_being_named(trust_system: Installation, tmp_path: Path) -> None:
    await trust_system.join("found")
    home = trust_system.homes["found"].root
    assert file_in_home("agent", {"home": str(home)}, {}) == home / "agent.toml"
    assert file_in_home("agent", {}, {"KEELMAN_AGENT_HOME": str(home)}) == home / "agent.toml"
    assert file_in_home("agent", {"home": str(tmp_path)}, {}) is None
    assert file_in_home("state", {"home": str(home)}, {}) is None


async def test_a_gateway_of_another_host_joins_and_serves(trust_system: Installation) -> None:
    token = await trust_system.token(role=JOIN_ROLE_GATEWAY)
    with pytest.raises(PermissionDenied, match="lets a gateway join, and not node 'g2'"):
        await trust_system.join("g2", token=token)
    await trust_system.join("g2", token=token, role=JoinRole.GATEWAY)
    await trust_system.join("logged")
    async with trust_system.second_gateway("g2") as link, trust_system.agent("logged"):
        await trust_system.online("logged")
        nodes = (await stub_of(link, "node", "node").ListNodes(ListNodesRequest(), timeout=300)).nodes
        assert "logged" in {node.name for node in nodes}
        call: Any = AgentServiceStub(link).StreamLogs(StreamLogsRequest(workload="worker/none/0"), timeout=300)
        with pytest.raises(NotFound, match="no workload 'worker/none/0'"):
            async for _ in translated_stream(call):
                pass


async def test_an_agent_does_not_start_with_what_is_not_its_own(trust_system: Installation) -> None:
    trust_system.homes["never"] = Home(trust_system.folder / "never")
    trust_system.homes["never"].root.mkdir()
    trust_system.homes["never"].settings_file("agent").write_text('node = "never"\ntrust = "installation"\n')
    await trust_system.join("n9")
    for home, flags, reason in (("never", {}, "NOT_JOINED"), ("n9", {"node": "n8"}, "WRONG_CERTIFICATE")):
        async with trust_system.agent(home, **flags) as agent:
            with pytest.raises(FailedPrecondition) as refused:
                await agent
        assert refused.value.reason == reason
    text = trust_system.homes["n9"].settings_file("agent").read_text()
    trust_system.homes["n9"].settings_file("agent").write_text(text + "log_days = 3\n")
    await trust_system.join("n9")
    assert trust_system.homes["n9"].settings_file("agent").read_text() == text + "log_days = 3\n"


async def test_tokens_are_listed_with_who_used_them_and_deleted(trust_system: Installation) -> None:
    token = await trust_system.token(member="listed")
    name = parsed_token(token).name
    await trust_system.join("listed", token=token)
    tokens = stub_of(trust_system.to_gateway, "access", "join_token")
    listed = {
        join_token.name: join_token for join_token in (await tokens.ListJoinTokens(ListJoinTokensRequest())).join_tokens
    }[name]
    assert (listed.member, listed.used_by, listed.HasField("use_time")) == ("listed", "listed", True)
    assert parsed_token(token).secret not in (trust_system.state_home.database).read_bytes().decode("latin-1")
    await tokens.DeleteJoinToken(DeleteJoinTokenRequest(name=name))
    with pytest.raises(NotFound, match=f"no join token '{name}'"):
        await tokens.DeleteJoinToken(DeleteJoinTokenRequest(name=name))
    with pytest.raises(Unauthenticated, match="the join token is unknown"):
        await trust_system.join("late", token=token)
