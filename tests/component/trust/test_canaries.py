"""The material of trust (the CA's key, a node's key, tokens, the key that seals) is only where it belongs.

It is in no other file, no table, no answer, no event and no line of a log.
"""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from keelman.api.access.v1.join_token_pb2 import JOIN_ROLE_GATEWAY
from keelman.api.access.v1.join_token_service_pb2 import ListJoinTokensRequest
from keelman.api.event.v1.watch_service_pb2 import WatchRequest
from keelman.model.access.join_token import JoinRole, parsed_token
from keelman.rpc.generated import stub_of
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.membership import MemberFolder
from keelman.state.database.key_source import read_keys
from keelman.state.database.sealing import Sealer
from support.state.trust import Installation, installation

pytestmark = pytest.mark.component


def body(pem: bytes | str) -> list[str]:
    """The lines that are particular to a key: the first line of all keys of a kind is the same."""
    text = pem if isinstance(pem, str) else pem.decode()
    return [line for line in text.splitlines() if line and not line.startswith("-")][1:]


def key_of(installed: Installation, kind: IdentityKind, name: str) -> list[str]:
    holder = Identity(kind, name)
    return body(MemberFolder(installed.homes[name].member(kind)).read(holder).key)


def key_of_authority(installed: Installation) -> list[str]:
    with sqlite3.connect(installed.state_home.database) as connection:
        (sealed,) = connection.execute("SELECT secret FROM authority").fetchone()
    file = installed.state_home.secrets_key
    return body(Sealer(read_keys(file)[0], file).open({"secret": sealed}, "authority")["secret"])


async def answers(installed: Installation) -> str:
    """The answers about members, tokens and all resources."""
    tokens = await stub_of(installed.to_gateway, "access", "join_token").ListJoinTokens(ListJoinTokensRequest())
    watch = stub_of(installed.to_gateway, "event", "watch").Watch(WatchRequest(), timeout=300)
    answer_texts = [str(tokens), str(await installed.nodes()), str(await watch.read())]
    watch.cancel()
    return "".join(answer_texts)


async def test_nothing_of_it_is_anywhere_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with installation(tmp_path) as installed:
        used, unused = await installed.token(), await installed.token(member="later")
        await installed.join("n1", token=used)
        await installed.join("g1", token=await installed.token(role=JOIN_ROLE_GATEWAY), role=JoinRole.GATEWAY)
        async with installed.agent("n1"):
            await installed.online("n1")
            answer_text = await answers(installed)
        secrets = {
            "the CA's key": key_of_authority(installed),
            "the node's key": key_of(installed, IdentityKind.NODE, "n1"),
            "the gateway's key": key_of(installed, IdentityKind.GATEWAY, "g1"),
            "tokens": [parsed_token(text).secret for text in (used, unused)],
            "the key that seals": installed.state_home.secrets_key.read_text().split(),
        }
    out = capfd.readouterr()
    texts = {str(f.relative_to(tmp_path)): f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()}
    assert any(name.startswith("state/state/state.db") for name in texts)
    texts |= {"answers": answer_text.encode(), "output": (out.out + out.err).encode()}
    results = {
        (what, place)
        for what, parts in secrets.items()
        for place, text in texts.items()
        if any(part.encode() in text for part in parts)
    }
    own = {
        ("the node's key", str((installed.homes["n1"].member("node") / "key.pem").relative_to(tmp_path))),
        ("the gateway's key", str((installed.homes["g1"].member("gateway") / "key.pem").relative_to(tmp_path))),
        ("the key that seals", str(installed.state_home.secrets_key.relative_to(tmp_path))),
    }
    assert results == own
    assert all(stat.S_IMODE((tmp_path / place).stat().st_mode) == 0o600 for _, place in own)
    assert all(secrets.values())
