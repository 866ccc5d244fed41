"""The provider of the installation's secrets: the files it reads, and the names that it may read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keelman.connect.config.providers import (
    SCOPE,
    SECRETS_OF_OTHERS,
    ConfigProviderError,
    SecretsProvider,
    is_named,
    provider_problems,
    providers_of,
    read,
    secret_providers,
    with_secrets_file,
)
from keelman.connect.config.references import references

OWN = SecretsProvider.java_class


def named(provider: str, java_class: str, **parameters: str) -> dict[str, str]:
    prefix = f"config.providers.{provider}"
    return {"config.providers": provider, f"{prefix}.class": java_class} | {
        f"{prefix}.param.{key}": value for key, value in parameters.items()
    }


@pytest.mark.parametrize("java_class", [OWN, *SECRETS_OF_OTHERS])
def test_it_reads_the_file_that_is_kept_beside_the_worker(tmp_path: Path, java_class: str) -> None:
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps({"prod/db": {"user": "me", "password": "p:w}d"}}))
    properties = with_secrets_file(named("s", java_class, **{"aws.region": "x"}), str(file))
    (provider,) = providers_of(properties).values()
    expected_references = references("${s:prod/db:user}:${s:prod/db:password}")
    assert list(read({"s": provider}, expected_references).values()) == ["me", "p:w}d"]
    before = provider.stamp("prod/db", ["user"])
    (tmp_path / "new").write_text(json.dumps({"other": {}}))
    (tmp_path / "new").replace(file)
    assert provider.stamp("prod/db", ["user"]) != before
    with pytest.raises(ConfigProviderError, match="There is no secret 'prod/db' that this worker may read"):
        provider.get("prod/db", ["user"])


def test_what_is_not_there_is_an_error_that_says_what_is(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps({"db": {"user": "me", "pwd": "hidden-value"}}))
    provider = SecretsProvider({"file": str(file)})
    with pytest.raises(ConfigProviderError, match="Secret 'db' has no key 'password': it has pwd, user") as error:
        provider.get("db", ["password"])
    assert "hidden-value" not in str(error.value)
    with pytest.raises(ConfigProviderError, match=r"\$\{provider:name:key\}"):
        provider.get("", ["db"])
    for broken in (SecretsProvider({"file": str(tmp_path / "none")}), SecretsProvider({"file": str(tmp_path)})):
        with pytest.raises(ConfigProviderError, match="Could not read secrets from file"):
            broken.get("db", ["user"])
    with pytest.raises(ConfigProviderError, match="There is no secret"):
        SecretsProvider({}).get("db", ["user"])


@pytest.mark.parametrize(
    ("patterns", "scope", "expected"),
    [
        ("*", "acct/*", "acct/*"),
        ("*", "acct/*,shared", "acct/*,shared"),
        ("*", "*", "*"),
        ("*", "", ""),
        ("acct/*,acct/db,other/db", "acct/*", "acct/*,acct/db"),
        ("a*", "acct/*", "acct/*"),
        ("b*", "acct/*", ""),
        ("acct/db", "acct/db", "acct/db"),
        ("acct/*", "acct/db", "acct/db"),
        ("*/db", "acct/*", "acct/*/db"),
        ("a*t/db", "acct/*", "acct/*t/db"),
        ("?cct/db,[a]cct/db", "acct/*", ""),
        ("acct/[ab]", "acct/*", "acct/[ab]"),
        ("acct/?,acc", "acct/*", "acct/?"),
    ],
)
def test_a_scope_is_what_all_providers_of_a_worker_stay_within(patterns: str, scope: str, expected: str) -> None:
    allowed_names = secret_providers(named("s", OWN, names=patterns) | {SCOPE: scope})["s"]
    assert allowed_names == tuple(filter(None, expected.split(",")))
    names = ("acct/db", "acct/a", "acct/", "acct/x/db", "acct", "shared", "other/db", "ac", "")
    within, allowed = scope.split(","), patterns.split(",")
    for name in filter(lambda value: is_named(value, allowed_names), names):
        assert is_named(name, within)
        assert is_named(name, allowed)


def test_which_names_a_provider_may_read() -> None:
    assert secret_providers(named("s", OWN)) == {"s": ("*",)}
    assert secret_providers(named("s", OWN, names=" db, prod/* ,")) == {"s": ("db", "prod/*")}
    assert secret_providers(named("aws", SECRETS_OF_OTHERS[0])) == {"aws": ("*",)}
    assert secret_providers(named("f", "org.apache.kafka.common.config.provider.FileConfigProvider")) == {}
    assert secret_providers({}) == {}
    ((key, text),) = provider_problems(named("s", OWN, names=" , "))
    assert (key, "must be names of secrets" in text) == ("config.providers.s.param.names", True)
    assert [key for key, _ in provider_problems(named("s", OWN) | {"x": "${s:no-name}"})] == ["x"]
    assert with_secrets_file({"a": "b"}, "/f") == {"a": "b"}
