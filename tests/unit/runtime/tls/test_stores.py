"""Java's key and trust stores, made with Java's own keytool and read here; TLS between contexts made of them."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_key

from keelman.model.errors import InvalidArgument
from keelman.runtime.java.installation import find
from keelman.runtime.tls.contexts import client_context, server_context
from keelman.runtime.tls.stores import read_identity, read_trusted

STORE, KEY = "store-secret", "key-secret"


def keytool(*arguments: str) -> None:
    plain = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
    program = str(find().home / "bin" / "keytool")
    subprocess.run([program, *arguments], check=True, capture_output=True, timeout=120, env=plain)


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    for kind, key_password in (("JKS", KEY), ("PKCS12", STORE)):
        key, trust = str(folder / f"key.{kind}"), str(folder / f"trust.{kind}")
        certificate = str(folder / f"{kind}.pem")
        names = ["-dname", f"CN={kind}", "-ext", "san=dns:localhost,ip:127.0.0.1", "-validity", "3650"]
        store = ["-storetype", kind, "-storepass", STORE]
        keytool(
            "-genkeypair", "-alias", "me", "-keyalg", "EC", *names, "-keystore", key, *store, "-keypass", key_password
        )
        keytool("-exportcert", "-rfc", "-alias", "me", "-keystore", key, *store, "-file", certificate)
        keytool("-importcert", "-noprompt", "-alias", "x", "-file", certificate, "-keystore", trust, *store)
    return folder


def named(folder: Path, kind: str, *, type_said: str = "") -> dict[str, str]:
    """A worker's keys for these stores."""
    types = {"ssl.keystore.type": type_said, "ssl.truststore.type": type_said} if type_said else {}
    return {
        "ssl.keystore.location": str(folder / f"key.{kind}"),
        "ssl.keystore.password": STORE,
        "ssl.key.password": KEY if kind == "JKS" else "",
        "ssl.truststore.location": str(folder / f"trust.{kind}"),
        "ssl.truststore.password": STORE,
        **types,
    }


def pem(folder: Path, *, password: str = "") -> dict[str, str]:
    """The same as PEM files, the key encrypted if there is a password."""
    identity = read_identity(named(folder, "PKCS12"))
    assert identity is not None
    key = identity.key
    if password:
        encryption = BestAvailableEncryption(password.encode())
        key = load_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    file = folder / f"identity{password}.pem"
    file.write_bytes(key + identity.certificates)
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(file),
        "ssl.key.password": password,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "PKCS12.pem"),
    }


async def _exchange(server: Mapping[str, str], client: Mapping[str, str]) -> bytes:
    """Returns the server's bytes over TLS."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_context(server))
    async with listening, asyncio.timeout(30):
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(client))
        writer.write(b"hello\n")
        received = await reader.read()
        writer.close()
        return received


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM", "PEM encrypted"])
async def test_both_sides_prove_who_they_are(stores: Path, kind: str) -> None:
    properties = pem(stores, password=KEY * (kind != "PEM")) if kind.startswith("PEM") else named(stores, kind)
    assert await _exchange({**properties, "ssl.client.auth": "required"}, properties) == b"hello\n"


async def test_strangers_are_refused_by_either_side(stores: Path) -> None:
    jks, pkcs12 = named(stores, "JKS"), named(stores, "PKCS12")
    with pytest.raises(ssl.SSLCertVerificationError):
        await _exchange(jks, pkcs12)
    without = {k: v for k, v in jks.items() if "keystore" not in k}
    assert await _exchange(jks, without) == b"hello\n"
    try:
        answer = await _exchange({**jks, "ssl.client.auth": "required"}, without)
    except (ssl.SSLError, ConnectionError):
        answer = b""
    assert answer == b""


def test_a_file_is_what_its_bytes_say(stores: Path) -> None:
    plain = named(stores, "JKS")
    assert read_identity({**plain, "ssl.keystore.type": "PKCS12"}) == read_identity(plain)
    assert read_trusted({**named(stores, "PKCS12"), "ssl.truststore.type": "JKS"}) == read_trusted(pem(stores))
    unverified = {k: v for k, v in plain.items() if k != "ssl.truststore.password"}
    assert read_trusted(unverified) == read_trusted(plain)
    assert read_identity({}) is None
    assert read_trusted({}) is None


@pytest.mark.parametrize(
    ("change", "named_key"),
    [
        ({"ssl.keystore.password": "wrong-1"}, "ssl.keystore.password"),
        ({"ssl.key.password": "wrong-1"}, "ssl.key.password"),
        ({"ssl.truststore.password": "wrong-1"}, "ssl.truststore.password"),
        ({"ssl.keystore.location": "/nowhere/at.all"}, "ssl.keystore.location"),
        ({"ssl.keystore.type": "PEM"}, "ssl.keystore.type"),
        ({"ssl.truststore.type": "BCFKS"}, "ssl.truststore.type"),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth"),
        ({"ssl.enabled.protocols": "TLSv9"}, "ssl.enabled.protocols"),
        ({"ssl.cipher.suites": "TLS_NO_SUCH_SUITE"}, "ssl.cipher.suites"),
    ],
)
def test_mistakes_name_their_key_and_no_secret(stores: Path, change: dict[str, str], named_key: str) -> None:
    properties = {**named(stores, "JKS"), "ssl.client.auth": "required", **change}
    with pytest.raises(InvalidArgument) as raised:
        server_context(properties)
    assert named_key in raised.value.message
    assert not any(secret in raised.value.message for secret in (STORE, KEY, "wrong-1"))


def test_suites_as_java_names_them(stores: Path) -> None:
    java = "TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_256_CBC_SHA256"
    context = server_context({**named(stores, "PKCS12"), "ssl.cipher.suites": java, "ssl.enabled.protocols": "TLSv1.2"})
    names = {c["name"] for c in context.get_ciphers()}
    assert {"ECDHE-ECDSA-AES128-GCM-SHA256", "AES256-SHA256"} <= names
    assert "ECDHE-ECDSA-AES256-GCM-SHA384" not in names
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2
