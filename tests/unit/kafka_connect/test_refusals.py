"""Why a worker of Apache Kafka Connect did not start, in words of its properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.kafka_connect.service import refused_stores
from support.certificates import PASSWORD, Authority


@pytest.fixture
def keys(tmp_path: Path) -> str:
    return str(Authority().issue("worker", "127.0.0.1").write_pkcs12(tmp_path / "keys.p12"))


def refused(folder: Path, properties: dict[str, str]) -> str:
    file = folder / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return str(refused_stores(file) or "")


@pytest.mark.parametrize("key", ["listeners", "admin.listeners"])
def test_the_property_of_a_store_that_does_not_open_is_named(tmp_path: Path, keys: str, key: str) -> None:
    store = f"{key}.https.ssl.keystore."
    fields = {key: "https://127.0.0.1:1", f"{store}location": keys, f"{store}password": PASSWORD}
    assert refused(tmp_path, fields) == ""
    assert refused(tmp_path, {**fields, f"{store}password": "wrong"}).startswith(f"{store}password: the password")
    missing = {**fields, f"{store}location": "/nowhere/keys.p12"}
    assert refused(tmp_path, missing).startswith(f"{store}location: '/nowhere/keys.p12' cannot be read")


def test_what_only_connect_can_read_and_what_nobody_asks_for_is_not_judged(tmp_path: Path, keys: str) -> None:
    store = "listeners.https.ssl.keystore."
    fields = {"listeners": "https://:1", f"{store}location": keys, f"{store}password": "${file:/secrets:keys}"}
    assert refused(tmp_path, fields) == ""
    assert refused(tmp_path, {**fields, "listeners": "http://:1", f"{store}password": "wrong"}) == ""
