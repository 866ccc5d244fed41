"""Tokens of OpenID Connect issuers: what is verified, which key verifies, and the role that a token gives."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from keelman.gateway.access.callers import Admission, Callers
from keelman.gateway.access.failures import SLOWED
from keelman.gateway.access.issuers import ALGORITHMS
from keelman.gateway.access.key_sets import keys_of
from keelman.gateway.settings import Settings
from keelman.model.access.roles import Role, token_digest
from keelman.model.errors import InvalidArgument, PermissionDenied, Unauthenticated
from support.gateway.issuer import AUDIENCE, Issuer

RULES = """
[[issuer.rule]]
claim = "groups"
value = "ops"
role = "operator"
clusters = ["demo"]
[[issuer.rule]]
claim = "scope"
value = "keelman.admin"
role = "admin"
[[issuer.rule]]
claim = "realm_access.roles"
value = "see"
role = "watcher"
"""


class World:
    """Callers of an access file with one issuer, whose keys are in a file."""

    def __init__(self, folder: Path) -> None:
        self.issuer = Issuer("https://login.example/realms/main")
        for algorithm in ALGORITHMS:
            self.issuer.add_key(algorithm, algorithm)
        self.file, self.jwks = folder / "access.toml", folder / "jwks.json"
        self.write()
        self.publish()
        self.now = time.time()
        self.callers = Callers(Settings(access_file=self.file), now=lambda: datetime.fromtimestamp(self.now, UTC))

    def write(self, more: str = "") -> None:
        self.file.write_text(
            f"[roles]\nwatcher = []\n[[token]]\nname = 'ci'\nrole = 'viewer'\nsha256 = '{token_digest('opaque')}'\n"
            f"[[issuer]]\nurl = '{self.issuer.url}'\naudience = '{AUDIENCE}'\njwks_file = '{self.jwks}'\n{more}{RULES}"
        )

    def publish(self) -> None:
        self.jwks.write_text(json.dumps(self.issuer.jwks()))

    def caller(self, token: str) -> Any:
        return self.callers.caller(Admission.CHECKED, f"Bearer {token}")

    def refusal(self, token: str) -> Unauthenticated:
        with pytest.raises(Unauthenticated) as refused:
            self.caller(token)
        return refused.value


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_gives_name_role_clusters_and_end(world: World, algorithm: str) -> None:
    caller = world.caller(world.issuer.token(algorithm, groups=["dev", "ops"]))
    assert (caller.name, caller.role, caller.clusters) == ("oidc:ada", Role.OPERATOR, {"demo"})
    assert 600 <= caller.expire_time.timestamp() - world.now <= 660


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"groups": "ops", "scope": "keelman.admin"}, "operator"),
        ({"scope": "openid keelman.admin"}, "admin"),
        ({"realm_access": {"roles": ["see"]}}, "watcher"),
        ({"realm_access.roles": ["see"]}, "watcher"),
    ],
)
def test_the_first_rule_that_takes_the_claims_gives_the_role(world: World, claims: dict[str, Any], role: str) -> None:
    assert str(world.caller(world.issuer.token("ES256", **claims)).role) == role


@pytest.mark.parametrize(
    "claims",
    [{}, {"groups": "dev ops"}, {"groups": {"ops": 1}}, {"scope": "keelman.admins"}, {"realm_access": "see"}],
)
def test_a_token_without_a_role_is_refused(world: World, claims: dict[str, Any]) -> None:
    with pytest.raises(PermissionDenied, match="oidc:ada has no role") as refused:
        world.caller(world.issuer.token("ES256", **claims))
    assert refused.value.reason == "NO_ROLE"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": "other"}, "BAD_TOKEN"),
        ({"aud": None}, "BAD_TOKEN"),
        ({"aud": ["other"]}, "BAD_TOKEN"),
        ({"iss": "https://evil.example"}, "BAD_TOKEN"),
        ({"iss": None}, "BAD_TOKEN"),
        ({"iss": ["https://login.example/realms/main"]}, "BAD_TOKEN"),
        ({"exp": None}, "BAD_TOKEN"),
        ({"exp": "never"}, "BAD_TOKEN"),
        ({"exp": True}, "BAD_TOKEN"),
        ({"exp": 1e300}, "BAD_TOKEN"),
        ({"exp": 1}, "EXPIRED"),
        ({"nbf": 99999999999}, "BAD_TOKEN"),
        ({"iat": 99999999999}, "BAD_TOKEN"),
        ({"sub": None}, "BAD_TOKEN"),
        ({"sub": "a\nb"}, "BAD_TOKEN"),
        ({"sub": "a" * 201}, "BAD_TOKEN"),
        ({"more": "x" * 20_000}, "BAD_TOKEN"),
    ],
)
def test_wrong_claims_are_refused(world: World, claims: dict[str, Any], reason: str) -> None:
    usual = {"groups": ["ops"]}
    assert world.caller(world.issuer.token("ES256", **usual))
    assert world.refusal(unchecked(world, usual | claims)).reason == reason


def unchecked(world: World, claims: dict[str, Any]) -> str:
    """A signed token whose claims may be of any kind."""
    usual = {"iss": world.issuer.url, "aud": AUDIENCE, "sub": "ada", "exp": int(world.now) + 600}
    content = {name: value for name, value in (usual | claims).items() if value is not None}
    algorithm, key = world.issuer.keys["ES256"]
    return jwt.PyJWS().encode(json.dumps(content).encode(), key, algorithm, headers={"kid": "ES256"})


def test_a_clock_may_be_wrong_by_the_leeway(world: World) -> None:
    token = world.issuer.token("ES256", groups="ops", now=world.now + 20, seconds=40)
    assert world.caller(token).name == "oidc:ada"
    world.now += 80
    assert world.caller(token).name == "oidc:ada"
    world.now += 15
    assert world.refusal(token).reason == "EXPIRED"


def part(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def forgeries(world: World) -> Iterator[tuple[str, str]]:
    """Tokens that nobody of the issuer has signed."""
    good = world.issuer.token("RS256", groups="ops")
    header, payload, signature = good.split(".")
    claims = {"iss": world.issuer.url, "aud": AUDIENCE, "sub": "eve", "exp": int(world.now) + 600, "groups": "ops"}
    yield "another payload", f"{header}.{part(claims)}.{signature}"
    yield "no signature", f"{header}.{payload}."
    for word in ("none", "None", "NONE", ""):
        yield f"algorithm {word}", f"{part({'alg': word, 'kid': 'RS256'})}.{part(claims)}."
    stranger = rsa.generate_private_key(65537, 2048)
    yield "a stranger's key", jwt.encode(claims, stranger, "RS256", headers={"kid": "RS256"})
    embedded = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(stranger.public_key()))
    yield "a key in the header", jwt.encode(claims, stranger, "RS256", headers={"kid": "RS256", "jwk": embedded})
    yield "a key's URL", jwt.encode(claims, stranger, "RS256", headers={"kid": "RS256", "jku": "https://evil"})
    public = world.issuer.keys["RS256"][1].public_key()
    for encoding in (public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), world.jwks.read_bytes()):
        signed = f"{part({'alg': 'HS256', 'kid': 'RS256', 'typ': 'JWT'})}.{part(claims)}"
        mac = base64.urlsafe_b64encode(hmac.digest(encoding, signed.encode(), hashlib.sha256)).rstrip(b"=").decode()
        yield "the public key as a secret", f"{signed}.{mac}"
    yield (
        "another algorithm of its key",
        world.issuer.token("RS256").replace(header, part({"alg": "ES256", "kid": "RS256"})),
    )
    yield (
        "an algorithm that is not legal",
        jwt.encode(claims, world.issuer.keys["RS256"][1], "PS256", headers={"kid": "RS256"}),
    )
    yield (
        "an extension",
        jwt.encode(claims, world.issuer.keys["RS256"][1], "RS256", headers={"kid": "RS256", "crit": ["x"], "x": 1}),
    )
    yield "no token", "a.b.c"
    yield "deep", f"{part({'alg': 'RS256'})}.{base64.urlsafe_b64encode(b'[' * 9000).decode()}.x"


def test_forged_tokens_are_refused(world: World) -> None:
    for what, token in forgeries(world):
        refused = world.refusal(token)
        assert refused.reason == "BAD_TOKEN", (what, refused)
        assert refused.reason in SLOWED


def test_algorithms_may_be_fewer(world: World) -> None:
    world.write("algorithms = ['ES256']\n")
    assert world.caller(world.issuer.token("ES256", groups="ops"))
    assert world.refusal(world.issuer.token("RS256", groups="ops")).reason == "BAD_TOKEN"


def test_a_key_that_is_published_later_or_withdrawn_counts_at_once(world: World) -> None:
    world.issuer.add_key("next")
    token, former = world.issuer.token("next", groups="ops"), world.issuer.token("ES256", groups="ops")
    assert world.refusal(token).reason == "UNKNOWN_KEY"
    world.publish()
    assert world.caller(token)
    del world.issuer.keys["ES256"]
    world.publish()
    assert world.refusal(former).reason == "UNKNOWN_KEY"
    assert world.caller(token)


def test_an_issuer_that_leaves_the_file_has_no_callers(world: World) -> None:
    token = world.issuer.token("ES256", groups="ops")
    assert world.caller(token)
    assert world.caller("opaque").name == "ci"
    world.file.write_text("")
    assert world.refusal(token).reason == "UNKNOWN_TOKEN"


def test_keys_that_cannot_be_read_are_a_problem(world: World) -> None:
    assert world.callers.problem == ""
    token = world.issuer.token("ES256", groups="ops")
    assert world.caller(token)
    world.jwks.write_text("{}")
    assert world.caller(token), "for an hour"
    assert "the keys of issuer https://login.example/realms/main cannot be read" in world.callers.problem
    world.publish()
    assert world.caller(token)
    assert world.callers.problem == ""


def test_only_keys_that_verify_are_taken(world: World) -> None:
    rows = world.issuer.jwks()["keys"]
    weak = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 1024).public_key()))
    rows += [
        {**rows[0], "use": "enc"}, {**rows[0], "alg": "RS512"}, weak, {"kty": "oct", "k": "c2VjcmV0", "kid": "s"},
        {"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA"}, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, {},
    ]  # fmt: skip
    assert [key.id for key in keys_of(json.dumps({"keys": rows}).encode())] == list(ALGORITHMS)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("algorithms = ['HS256']\n", "algorithms: 'HS256' is not legal: of RS256, ES256, EdDSA"),
        ("algorithms = ['none']\n", "algorithms: 'none' is not legal"),
        ("leeway_seconds = 3600\n", "leeway_seconds: '3600' is not legal: a number from 0 to 300"),
        ("jwks_url = 'https://a/b'\n", "jwks_url: .* left out, as jwks_file is set"),
        ("key = 1\n", "issuer 1: 'key' is not legal: only "),
        ("[[issuer.rule]]\nclaim = 'a'\nvalue = 'b'\nrole = 'x'\n", "issuer 1: rule 1: role: 'x' is not legal"),
        ("[[issuer.rule]]\nvalue = 'b'\nrole = 'viewer'\n", "issuer 1: rule 1: claim"),
    ],
)
def test_a_wrong_table_is_refused(world: World, more: str, message: str) -> None:
    world.write(more)
    with pytest.raises(InvalidArgument, match=message):
        Callers(Settings(access_file=world.file))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("url = 'http://login.example'\naudience = 'a'", "url: .* begins with https://"),
        ("url = 'https://a'", "audience: 'list' is not legal"),
        ("url = 'https://a'\naudience = 'a'", "'rule' is not legal: one table"),
        ("url = 'https://a'\naudience = 'a'\njwks_url = 'file:///etc/passwd'", "jwks_url: .* begins with https://"),
    ],
)
def test_a_wrong_issuer_is_refused(tmp_path: Path, table: str, message: str) -> None:
    file = tmp_path / "access.toml"
    file.write_text(f"[[issuer]]\n{table}\n")
    with pytest.raises(InvalidArgument, match=message):
        Callers(Settings(access_file=file))
