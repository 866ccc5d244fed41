"""A member's credentials: a certificate for its own key, signed by the CA beside it, within its validity."""

import asyncio
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keelman.model.access.join_token import JoinSecret, parsed_token, token_and_address
from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.rpc import membership
from keelman.rpc.credentials import Pems
from keelman.rpc.identity import Identity, IdentityKind, identity_in, server_name
from keelman.rpc.membership import Member, MemberFolder, TrustedAuthority, checked_member
from keelman.runtime.tls.certificates import certificate_facts, certificate_request, last_digest, made_key
from keelman.state.trust.authority import Authority, checked_hosts, read_request

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOUR, LIFE = timedelta(hours=1), timedelta(days=30)
N1 = Identity(IdentityKind.NODE, "n1")
CA, OTHER = Authority.made(NOW), Authority.made(NOW)
KEY = made_key()


def pems(holder: Identity = N1, *, by: Authority = CA, key: bytes = KEY, shown: bytes = KEY) -> Pems:
    return Pems(by.sign(certificate_request(key), holder, (), NOW, LIFE).encode(), shown, CA.pem.encode())


WRONG = {
    "another name": (pems(Identity(IdentityKind.NODE, "n2")), NOW, "WRONG_CERTIFICATE", "is of keelman://node/n2, and"),
    "another kind": (pems(Identity(IdentityKind.GATEWAY, "n1")), NOW, "WRONG_CERTIFICATE", "keelman://gateway/n1, and"),
    "another CA": (pems(by=OTHER), NOW, "WRONG_CERTIFICATE", "not signed by the CA beside it"),
    "another key": (pems(shown=made_key()), NOW, "WRONG_CERTIFICATE", "of another private key"),
    "no key": (pems(shown=b"nothing"), NOW, "WRONG_CERTIFICATE", "not a certificate with its key"),
    "no certificate": (Pems(b"nothing", KEY, b""), NOW, "WRONG_CERTIFICATE", "not a certificate with its key"),
    "ended": (pems(), NOW + LIFE, "CERTIFICATE_ENDED", r"ended at 2026-07-31 12:00:00 UTC, and here it is 2026-07-31"),
    "a clock an hour behind": (
        pems(), NOW - HOUR, "CERTIFICATE_NOT_YET_VALID",
        r"good from 2026-07-01 11:55:00 UTC on, and here it is 2026-07-01 11:00:00 UTC: check the clock of this host",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_nobody_would_accept_is_refused_before_anything_starts(case: str) -> None:
    value, now, reason, text = WRONG[case]
    with pytest.raises(FailedPrecondition, match=text) as refused:
        checked_member(N1, value, "/home/certificate.pem", now)
    assert refused.value.reason == reason
    assert "/home/certificate.pem" in refused.value.message


def test_a_clock_may_be_some_minutes_behind() -> None:
    for now in (NOW - timedelta(minutes=4), NOW, NOW + LIFE - timedelta(seconds=1)):
        assert checked_member(N1, pems(), "", now).key == KEY


def test_what_is_kept_is_closed_to_others_and_found_again(tmp_path: Path) -> None:
    folder = MemberFolder(tmp_path / "trust" / "node")
    with pytest.raises(FailedPrecondition, match=r"node 'n1' has not joined yet: .*`keelman node join TOKEN@GATEWAY`"):
        folder.read(N1)
    now = datetime.now(UTC)
    stored_pems = Pems(CA.sign(certificate_request(KEY), N1, (), now, LIFE).encode(), KEY, CA.pem.encode())
    folder.write(stored_pems)
    assert folder.read(N1) == stored_pems
    assert [stat.S_IMODE(file.stat().st_mode) for file in (folder.root, folder.key)] == [0o700, 0o600]


def test_a_certificate_says_whose_it_is() -> None:
    hosts = ("10.0.0.2", "n1.example.org", "fd00::2")
    facts = certificate_facts(CA.sign(certificate_request(KEY), N1, hosts, NOW, LIFE).encode())
    assert facts.uris == ("keelman://node/n1",)
    assert (facts.begin, facts.end) == (NOW - timedelta(minutes=5), NOW + LIFE)
    assert NOW + LIFE * 0.6 < facts.renewal() < NOW + LIFE * 0.7
    assert server_name(N1) == "n1.node.keelman.internal"


@pytest.mark.parametrize("host", ["state.keelman.internal", "STATE.Keelman.Internal.", "a b", "", "*.example.org"])
def test_names_that_only_we_give_stand_in_no_request(host: str) -> None:
    with pytest.raises(InvalidArgument, match="hosts: "):
        checked_hosts([host])


@pytest.mark.parametrize("text", ["", "nothing", certificate_request(KEY).replace("M", "N", 3)])
def test_a_request_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="certificate_request: "):
        read_request(text)


def test_identities() -> None:
    assert identity_in(["n1", "10.0.0.2", "keelman://node/n1"]) == N1
    for names in ([], ["keelman://node/n1", "keelman://node/n2"], ["keelman://king/n1"], ["keelman://node/a/b"]):
        assert identity_in(names) is None


def test_tokens_are_taken_apart_and_never_shown() -> None:
    token = JoinSecret("4c0a9f21", "s" * 32, "d4" * 32)
    assert parsed_token(token.text) == token
    assert token_and_address(f"{token.text}@[fd00::1]:7400") == (token, "[fd00::1]:7400")
    assert "sss" not in repr(token)
    for text in (token.text, f"{token.text}@", f"{token.text}@host", f"{token.text}@host:0", f"{token.text[1:]}@h:1"):
        with pytest.raises(InvalidArgument, match="token: ") as refused:
            token_and_address(text)
        assert "sss" not in refused.value.message


@pytest.mark.parametrize("signing", [CA, OTHER], ids=["trusted beside", "signs"])
async def test_a_member_follows_a_ca_that_is_replaced(monkeypatch: pytest.MonkeyPatch, signing: Authority) -> None:
    monkeypatch.setattr(membership, "LOOK_SECONDS", 0.0)
    looks, asks, kept = 0, 0, asyncio.Event()
    roots = (CA.pem + OTHER.pem).encode()

    async def ask(request: str) -> Pems:
        nonlocal asks
        asks += 1
        return Pems(signing.sign(request, N1, (), datetime.now(UTC), LIFE).encode(), b"", roots)

    async def look() -> TrustedAuthority:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise Unavailable("the state service is away")
        if looks < 5:
            return TrustedAuthority(CA.pem.encode(), CA.digest)
        if looks == 20:
            kept.set()
        return TrustedAuthority(roots, signing.digest)

    first = Pems(CA.sign(certificate_request(KEY), N1, (), datetime.now(UTC), LIFE).encode(), KEY, CA.pem.encode())
    member = Member(N1, first, ask, lambda pems: None, look)
    run = asyncio.ensure_future(member.run())
    try:
        async with asyncio.timeout(30):
            await kept.wait()
    finally:
        run.cancel()
    assert asks == 1, "once it has what is given it asks no more"
    assert member.newest().roots == roots
    assert last_digest(member.newest().chain) == signing.digest
