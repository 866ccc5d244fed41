"""The three steps in which the CA is replaced: who must have followed before each of them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from keelman.model.errors import FailedPrecondition
from keelman.rpc.identity import Identity, IdentityKind
from keelman.runtime.tls.certificates import certificate_request, issued_by, last_digest, made_key
from keelman.state.database.times import micros
from keelman.state.rotation.steps import followers_of, rotate
from keelman.state.secrets.sealed_rows import rekey_file
from keelman.state.trust.authorities import Authorities, AuthorityPhase, authority_rows
from keelman.state.trust.authority import key_digest_of
from keelman.state.trust.members import Members, open_members
from support.state.stores import open_store

LIFE = timedelta(days=30)
N1, G1 = Identity(IdentityKind.NODE, "n1"), Identity(IdentityKind.GATEWAY, "g1")
REQUEST = certificate_request(made_key())
KEY = key_digest_of(REQUEST)


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[Members]:
    async with open_store(str(tmp_path / "state.db")) as store:
        yield await open_members(store, LIFE)


async def step(members: Members, *, force: bool = False) -> Authorities:
    async with members.store.write() as tx:
        result = await rotate(tx, force=force)
    assert await members.follow()
    assert not await members.follow(), "it is read once"
    return result


async def ready(members: Members) -> dict[str, bool]:
    store = members.store
    async with store.database.read() as session:
        found = await followers_of(session, store.snapshot, members.present.value, micros(store.database.clock()))
    return {follower.name: follower.is_ready for follower in found}


async def test_each_step_waits_for_all_members(members: Members) -> None:
    old = members.authority
    await members.issue(N1, REQUEST, [])
    await members.issue(G1, REQUEST, [])
    assert await ready(members) == {"gateway/g1": True, "node/n1": True}

    introduced = await step(members)
    assert introduced.phase is AuthorityPhase.INTRODUCED
    assert introduced.digests[0] == old.digest
    assert await ready(members) == {"gateway/g1": False, "node/n1": False}
    chain = await members.renew(N1, KEY, REQUEST, [])
    assert last_digest(chain.encode()) == old.digest, "the old one signs until all trust the new one"
    with pytest.raises(FailedPrecondition, match="gateway/g1 do not trust the new CA yet") as error:
        await step(members)
    assert error.value.reason == "MEMBERS_BEHIND"
    await members.renew(G1, KEY, REQUEST, [])

    replaced = await step(members)
    assert replaced.phase is AuthorityPhase.REPLACED
    assert replaced.digests == introduced.digests[::-1]
    chain = await members.renew(N1, KEY, REQUEST, [])
    assert last_digest(chain.encode()) == replaced.signing.digest
    assert issued_by(chain.encode(), introduced.pem.encode())
    with pytest.raises(FailedPrecondition, match="gateway/g1 have no certificate of the new CA yet"):
        await step(members)

    after = await step(members, force=True)
    assert (after.phase, after.digests) == (AuthorityPhase.STABLE, [replaced.signing.digest])
    assert after.trusts(chain.encode())
    assert await ready(members) == {"gateway/g1": False, "node/n1": True}
    again = await open_members(members.store, LIFE)
    assert again.authority.key_pem == replaced.signing.key_pem


async def test_members_whose_certificate_ended_hold_nothing_up(members: Members) -> None:
    await members.issue(N1, REQUEST, [])
    await step(members)
    clock = members.store.database.clock
    members.store.database.clock = lambda: clock() + LIFE
    assert (await step(members)).phase is AuthorityPhase.REPLACED


async def test_both_private_keys_are_sealed_again(tmp_path: Path) -> None:
    database = tmp_path / "state.db"
    async with open_store(str(database)) as store:
        members = await open_members(store, LIFE)
        present = await step(members)
        async with store.database.read() as session:
            before = {row.secret for row in await authority_rows(session)}
    assert await rekey_file(str(database), tmp_path / "secrets.key") == 2
    async with open_store(str(database)) as store:
        again = (await open_members(store, LIFE)).present.value
        async with store.database.read() as session:
            assert not before & {row.secret for row in await authority_rows(session)}
    assert again.other is not None
    assert present.other is not None
    assert [again.signing.key_pem, again.other.key_pem] == [present.signing.key_pem, present.other.key_pem]
