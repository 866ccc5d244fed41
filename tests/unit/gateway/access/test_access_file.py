"""The access file: its legal content, and that it is read again when it changes."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keelman.gateway.access import access_file
from keelman.gateway.access.access_file import KEYS, AccessFile, WatchedAccessFile, read_access_file
from keelman.gateway.access.accounts import WHOLE, Account
from keelman.gateway.access.callers import Admission, Callers
from keelman.gateway.caller import GatewayCaller
from keelman.gateway.settings import Settings
from keelman.model.access.roles import OwnRole, Right, Role, token_digest
from keelman.model.errors import InvalidArgument, Unauthenticated
from keelman.rpc.identity import Identity, IdentityKind

DIGEST = token_digest("secret")
TOKEN = f"[[token]]\nsha256 = '{DIGEST}'\nname = 'ci'\nrole = 'operator'\n"
ACCOUNT = "[[account]]\nid = '123450006789'\n"
USER = "[[user]]\nname = 'alice'\nrole = 'admin'\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "access.toml"


def test_callers_have_their_role_for_all_clusters_or_for_some(file: Path) -> None:
    file.write_text(f"{TOKEN}clusters = ['a', 'b']\n{USER}[[key]]\nid='k'\nsecret='s'\naccount='123450006789'\n")
    access_file = read_access_file("gateway.access_file", file)
    assert access_file.tokens == {DIGEST: GatewayCaller("ci", Role.OPERATOR, frozenset({"a", "b"}))}
    assert access_file.users == {"alice": GatewayCaller("alice", Role.ADMIN)}
    assert access_file.keys["k"].role is Role.ADMIN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOKEN.replace(DIGEST, "secret"), "token 1: sha256: 'secret' is not legal: 64 digits"),
        (TOKEN + TOKEN, "token 2: sha256"),
        (TOKEN + TOKEN.replace(DIGEST, token_digest("other")), "token 2: name: 'ci' is not legal.*unlike all others"),
        (TOKEN.replace("operator", "root"), "role: 'root' is not legal: one of viewer, operator, admin"),
        (TOKEN.replace("role = 'operator'", ""), "role: None is not legal: one of viewer"),
        (TOKEN + "clusters = []", "clusters: .* a list of worker clusters' names that is not empty"),
        (TOKEN + "clusters = 'a'", "clusters: 'a' is not legal"),
        (TOKEN + "clusters = ['A']", "clusters: 'A' is not legal: 1 to 63"),
        (TOKEN + "cluster = ['a']", "token 1: 'cluster' is not legal: only sha256, name, role, clusters"),
        (USER.replace("alice", "al ice"), "user 1: name: 'al ice'"),
        ("[[key]]\nid = 'a'\nsecret = 's'\naccount = '12'", "key 1: account: '12' is not legal: 12 digits"),
        ("[[key]]\nid = 'a'\naccount = '123450006789'", "key 1: secret: 'NoneType'"),
        ("[[account]]\nid = '12'", "account 1: id: '12' is not legal: 12 digits"),
        (f"{ACCOUNT}{ACCOUNT}", "account 2: id: '123450006789' is not legal: .* unlike all others"),
        (f"{ACCOUNT}bucket = ['a']", "account 1: 'bucket' is not legal: only id, secrets, buckets"),
        (f"{ACCOUNT}buckets = 'a'", "account 1: buckets: 'a' is not legal: a list of names of buckets"),
        (f"{ACCOUNT}secrets = ['a*b']", "account 1: secrets: .* a list of names of secrets, with . for any rest"),
        (f"{ACCOUNT}secrets = ['']", "account 1: secrets"),
        ("key = 1", "tables that begin with"),
        (
            "keys = 1",
            r"tables \[\[token\]\], \[\[user\]\], \[\[issuer\]\], .*\[\[role\]\], \[tls\] and \[roles\] alone",
        ),
        ("[[role]]\narn = 'a'", "client_properties"),
        ("[tls]", "tls: client_properties: 'NoneType' is not legal: a table of texts"),
        ("[tls.client_properties]\n'ssl.x' = 1", "tls: client_properties: 'dict' is not legal: a table of texts"),
        ("[tls.client_properties]\n'sasl.mechanism' = 'PLAIN'", "'sasl.mechanism' is not legal: .* begin with ssl."),
        ("[tls]\nclient_property = {}", "tls: 'client_property' is not legal: only client_properties"),
        ("[[tls]]", r"'tls' is not legal: a table \[tls\]"),
        ("[roles]\nadmin = []", "roles: 'admin' is not legal: 1 to 63 .* none of viewer, operator, admin"),
        ("[roles]\nA = []", "roles: 'A' is not legal"),
        ("[roles]\nfixer = 'view'", "roles: fixer: 'str' is not legal: a list of rights"),
        ("[roles]\nfixer = ['repair']", "roles: fixer: 'repair' is not legal: rights, of view, restart, configure"),
        (f"[roles]\nfixer = []\n{TOKEN.replace('operator', 'root')}", "one of viewer, operator, admin, fixer"),
        ("roles = 1", r"'roles' is not legal: a table \[roles\]"),
        ("[[key", "a TOML file"),
    ],
)
def test_the_file_says_what_is_wrong_in_it(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=message):
        read_access_file("gateway.access_file", file)


def test_a_file_has_roles_of_its_own(file: Path) -> None:
    key = "[[key]]\nid='k'\nsecret='s'\naccount='123450006789'\nrole='fixer'\n"
    file.write_text(f"[roles]\nfixer = ['restart']\n{TOKEN.replace('operator', 'fixer')}{key}")
    access_file = read_access_file("gateway.access_file", file)
    caller = access_file.tokens[DIGEST]
    assert caller.role == access_file.keys["k"].role == OwnRole("fixer", frozenset({Right.VIEW, Right.RESTART}))
    assert str(caller.role) == "fixer"
    assert [right for right in Right if caller.has(right)] == [Right.VIEW, Right.RESTART]


def test_client_properties_of_tls_without_a_role_are_those_of_both_files(file: Path, tmp_path: Path) -> None:
    file.write_text("[tls.client_properties]\n'ssl.truststore.type' = 'PEM'\n'ssl.truststore.location' = '/a'\n")
    assert read_access_file("x", file).tls == {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/a"}
    assert read_access_file("x", None).tls == {}
    managed = tmp_path / "managed.toml"
    managed.write_text("[tls.client_properties]\n'ssl.truststore.location' = '/b'\n")
    callers = Callers(Settings(access_file=file, managed_connect_access_file=managed))
    assert callers.tls == {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/b"}
    managed.write_text("")
    assert callers.tls["ssl.truststore.location"] == "/a", "it is read again"


def key_of(account: str) -> str:
    return f"[[key]]\nid = 'of-{account}'\nsecret = 's'\naccount = '{account}'\n"


def test_what_an_account_may_name(file: Path, tmp_path: Path) -> None:
    first, second = "123450006789", "999988887777"
    managed = tmp_path / "managed.toml"
    file.write_text(key_of(first))
    managed.write_text("")
    callers = Callers(Settings(access_file=file, managed_connect_access_file=managed))
    assert callers.account(first) == WHOLE, "there is no other"
    managed.write_text(key_of(second))
    assert callers.account(first) == Account((f"{first}/*",), ())
    assert callers.account(second) == Account((f"{second}/*",), ())
    managed.write_text(f"{key_of(second)}{ACCOUNT}secrets = ['prod/*', 'shared']\nbuckets = ['logs-*']\n")
    account = callers.account(first)
    assert account == Account(("prod/*", "shared"), ("logs-*",))
    assert not account.has_all_secrets
    assert [account.has_bucket(name) for name in ("logs-", "logs-a", "log")] == [True, True, False]
    assert callers.account(second) == Account((f"{second}/*",), ())
    file.write_text(key_of(first))
    managed.write_text(f"{ACCOUNT}secrets = ['*']\n")
    assert callers.account(first) == Account(("*",), ()), "its entry holds, though the file has no other"
    assert callers.account(first).has_all_secrets


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="a file that can be read"):
        read_access_file("gateway.access_file", tmp_path / "none")


def test_the_file_of_the_managed_connect_api_has_no_tokens(file: Path) -> None:
    file.write_text(TOKEN)
    with pytest.raises(
        InvalidArgument, match=r"tables \[\[key\]\], \[\[account\]\], \[\[role\]\], \[tls\] and \[roles\] alone"
    ):
        read_access_file("gateway.managed_connect_access_file", file, KEYS)


def test_a_changed_file_is_read_again_and_one_that_is_wrong_changes_nothing_at_first(file: Path) -> None:
    file.write_text(TOKEN)
    now = 1000.0
    watched = WatchedAccessFile("gateway.access_file", file, clock=lambda: now)
    assert [*watched.now().tokens] == [DIGEST]
    file.write_text(USER)
    assert [*watched.now().tokens] == []
    assert [*watched.now().users] == ["alice"]
    assert watched.problem == ""
    file.write_text("no TOML")
    assert [*watched.now().users] == ["alice"]
    assert "a TOML file" in watched.problem
    os.unlink(file)
    assert [*watched.now().users] == ["alice"]
    now += 59
    assert [*watched.now().users] == ["alice"]
    now += 2
    assert watched.now() == AccessFile(), "an old file does not stay for more than a minute"
    assert "a file that can be read" in watched.problem
    file.write_text(TOKEN)
    assert [*watched.now().tokens] == [DIGEST]
    assert watched.problem == ""


def test_a_look_at_the_file_is_good_for_a_moment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_file, "LOOK_SECONDS", 0.5)
    now = 1000.0
    file.write_text(TOKEN)
    watched = WatchedAccessFile("gateway.access_file", file, clock=lambda: now)
    assert [*watched.now().tokens] == [DIGEST]
    file.write_text(USER)
    now += 0.4
    assert [*watched.now().tokens] == [DIGEST]
    now += 0.2
    assert [*watched.now().users] == ["alice"]


def test_a_file_that_could_not_be_read_is_read_once_it_can_be(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(TOKEN)
    watched = WatchedAccessFile("gateway.access_file", file)

    def refused(*_args: object, **_kwargs: object) -> str:
        raise PermissionError(13, "Permission denied")

    file.write_text(USER)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", refused)
        assert [*watched.now().tokens] == [DIGEST]
        assert "Permission denied" in watched.problem
    file.chmod(0o640)  # like chown, this changes neither the content nor its time
    assert [*watched.now().users] == ["alice"]


def test_credentials_end(file: Path) -> None:
    file.write_text(f"{TOKEN}expires = 2027-01-31T00:00:00Z\n{USER}expires = 2027-01-31T01:00:00+01:00\n")
    now = datetime(2027, 1, 30, 23, 59, 59, tzinfo=UTC)
    callers = Callers(Settings(access_file=file), lambda: now)
    alice = Identity(IdentityKind.USER, "alice")
    with pytest.raises(Unauthenticated, match="the token is unknown"):
        callers.caller(Admission.CHECKED, "Bearer other")
    assert callers.caller(Admission.CHECKED, "", alice).name == "alice"
    now += timedelta(seconds=1)
    with pytest.raises(Unauthenticated, match="the credentials of alice expired at 2027-01-31") as expired:
        callers.caller(Admission.CHECKED, "", alice)
    assert expired.value.reason == "EXPIRED"


@pytest.mark.parametrize("end", ["2027-01-31", "2027-01-31T00:00:00", "'2027-01-31T00:00:00Z'", "1"])
def test_an_end_has_an_offset(file: Path, end: str) -> None:
    file.write_text(f"{USER}expires = {end}\n")
    with pytest.raises(InvalidArgument, match=r"user 1: expires: .* a time with its offset"):
        read_access_file("gateway.access_file", file)
