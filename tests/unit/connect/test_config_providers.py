"""Config providers and references, compared with the recorded behaviour of a real worker."""

import json
import os
from pathlib import Path

import pytest

from keelman.connect.config.providers import ConfigProviderError, providers_of, read
from keelman.connect.config.references import ConfigReference, references, references_of, resolved, restored
from keelman.connect.config.secret_keys import is_secret_key, literal_secrets, shown
from keelman.connect.errors import ConfigValueError, ConnectError
from support.places import RECORDED_FOLDER

PACKAGE = "org.apache.kafka.common.config.provider"
SECRET = "pa55-of-the-record"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes the files of the record and sets its environment."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "p.properties").write_text(
        f"topic=t-recorded\nsize=many\npassword={SECRET}\nnested=${{env:RECORDED_TOPIC}}\nmethods=GET\nempty=\n"
        "class=FileStreamSource\n"
    )
    (secrets / "token").write_text(f"{SECRET}\n")
    (tmp_path / "outside.properties").write_text("topic=outside\n")
    monkeypatch.setenv("RECORDED_TOPIC", "t-of-env")
    monkeypatch.setenv("OTHER_TOPIC", "t-hidden")
    return tmp_path


def properties(folder: Path) -> dict[str, str]:
    """The providers of the record's worker."""
    return {
        "config.providers": "file, dir,env,nowhere",
        "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": f"{folder}/secrets",
        "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
        "config.providers.dir.param.allowed.paths": f"{folder}/secrets",
        "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "RECORDED_.*",
    }


def recorded() -> list[tuple[str, str, str]]:
    """Name, reference and the worker's value for it (or the error's message), for each `validate` with a topic."""
    record = json.loads((RECORDED_FOLDER / "worker" / "config_providers.json").read_text())
    results = []
    for request in record["requests"]:
        answer = request["answer"]
        if request["name"].startswith("validate") and "topic" in request["body"] and "class" not in request["name"]:
            if "values" in answer:
                # Java trims the value that it shows; the provider does not.
                results.append((request["name"], request["body"]["topic"], answer["values"]["topic"]["value"]))
            elif "ConfigException" in answer["message"] and "override" not in request["name"]:
                results.append((request["name"], request["body"]["topic"], answer["message"]))
    return results


@pytest.mark.parametrize(("name", "text", "expected"), recorded())
def test_values_are_those_of_the_record(name: str, text: str, expected: str, folder: Path) -> None:
    config = {"topic": text.replace("<folder>", str(folder))}
    try:
        values = read(providers_of(properties(folder)), references_of(config))
        actual_text = resolved(config, values)["topic"].strip()
    except ConfigProviderError as error:
        actual_text = f"{error.java_name}: {error}"
    assert actual_text.replace(str(folder), "<folder>") == expected


def test_tasks_are_stored_as_in_the_record(folder: Path) -> None:
    record = json.loads(
        (RECORDED_FOLDER / "worker" / "config_providers.json").read_text().replace("<folder>", str(folder))
    )
    stored = {key: json.loads(value)["properties"] for key, value in record["topic"]}
    connector = stored["connector-good"]
    values = read(providers_of(properties(folder)), references_of(connector))
    task = {**resolved(connector, values), "task.class": stored["task-good-0"]["task.class"]}
    assert task["other"] == SECRET
    assert restored([task], connector, values) == [stored["task-good-0"]]


def test_what_a_connector_makes_of_a_secret_is_found_there_too() -> None:
    connector = {"topics": "${env:TOPICS}", "password": "${file:/s:p}", "short": "${env:N}"}
    values = {
        ConfigReference("env", "", "TOPICS"): "orders,refunds",
        ConfigReference("file", "/s", "p"): "a long secret",
        ConfigReference("env", "", "N"): "7",
    }
    task = {"topics": "orders", "url": "db://me:a long secret@h", "short": "7", "id": "7", "password": "a long secret "}
    assert restored([task], connector, values) == [
        {
            "topics": "orders",
            "url": "db://me:${file:/s:p}@h",
            "short": "${env:N}",
            "id": "7",
            "password": "${file:/s:p} ",
        }
    ]


def test_references_have_colons_only_before_their_keys() -> None:
    assert references("x${file:/a/b:k:with:colons}y${env:V}$${a}${}") == [
        ConfigReference("file", "/a/b", "k:with:colons"),
        ConfigReference("env", "", "V"),
    ]
    assert references("${a${b:c}") == [ConfigReference("a${b", "", "c")]


def test_providers_are_checked_at_the_start(tmp_path: Path) -> None:
    unknown = {"config.providers": "vault", "config.providers.vault.class": "com.acme.Vault"}
    text = (
        "Invalid value com.acme.Vault for configuration config.providers.vault.class: "
        "Could not load config provider class or one of its dependencies"
    )
    with pytest.raises(ConfigValueError) as failure:
        providers_of(unknown)
    assert str(failure.value).startswith(text + ". Those there are: org.apache.kafka.common.config.provider.File")
    for paths, reason in ((f"{tmp_path}/no", "does not exist"), ("etc", "is not absolute")):
        with pytest.raises(ConfigProviderError, match=reason):
            providers_of({**properties(tmp_path), "config.providers.file.param.allowed.paths": paths})


def test_no_read_waits_or_grows(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"a=b\n" * 300_000)
    (tmp_path / "latin").write_bytes(b"a=\xe9\n")
    unbounded = {k: v for k, v in properties(tmp_path).items() if not k.endswith("allowed.paths")}
    providers = providers_of(unbounded)
    for path in (tmp_path / "pipe", tmp_path / "large", tmp_path / "latin", Path("/dev/zero"), tmp_path):
        with pytest.raises(ConfigProviderError, match=f"Could not read properties from file {path}"):
            providers["file"].get(str(path), ["a"])
    assert providers["dir"].get(str(tmp_path), ["../etc/passwd", "..", "pipe"]) == {}


def test_a_stamp_differs_once_the_file_is_written_again_or_replaced(folder: Path) -> None:
    providers, file = providers_of(properties(folder)), folder / "secrets" / "p.properties"
    before = providers["file"].stamp(str(file), ["topic"])
    assert providers["file"].stamp(str(file), ["topic"]) == before
    (folder / "new").write_bytes(file.read_bytes())
    (folder / "new").replace(file)
    replaced = providers["file"].stamp(str(file), ["topic"])
    assert replaced != before
    file.unlink()
    assert providers["file"].stamp(str(file), ["topic"]) not in (before, replaced)
    token = providers["dir"].stamp(f"{folder}/secrets", ["token"])
    (folder / "secrets" / "token").write_text("other\n")
    assert providers["dir"].stamp(f"{folder}/secrets", ["token"]) != token


def test_secrets_are_known_by_their_keys() -> None:
    for key in (
        "sasl.jaas.config",
        "producer.override.sasl.jaas.config",
        "ssl.key.password",
        "database.password",
        "consumer.ssl.keystore.key",
        "aws.secret.access.key",
        "api_token",
        "client.secret",
    ):
        assert is_secret_key(key), key
    for key in ("keelman.secrets.policy", "topic", "key.converter", "ssl.keystore.location", "tokens.max"):
        assert not is_secret_key(key), key
    jaas = 'a.PlainLoginModule required username="u" password="p4ss;word";'
    config = {"sasl.jaas.config": jaas, "db.password": "${file:/s:p}", "topic": "t"}
    assert shown(config) == {"sasl.jaas.config": "[hidden]", "db.password": "${file:/s:p}", "topic": "t"}
    assert literal_secrets(config) == {jaas: "[hidden]", "p4ss;word": "[hidden]"}


def test_a_providers_error_is_one_of_connects() -> None:
    assert issubclass(ConfigProviderError, ConnectError)
    assert ConfigProviderError.java_name == "org.apache.kafka.common.config.ConfigException"
