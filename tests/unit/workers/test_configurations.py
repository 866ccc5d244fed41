"""Worker configurations: the legal keys, how the content is read, and which values are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.model.errors import InvalidArgument
from keelman.workers.configurations import (
    ALLOWED,
    DEFAULT_PROPERTIES,
    DENIED,
    DENIED_PREFIXES,
    MAX_BYTES,
    checked_content,
    converters_of_plugins,
    properties_of,
    shown_content,
    violations,
)

DOCS = Path(__file__).parents[3] / "docs" / "worker-configurations.md"
BASE = b"".join(f"{key}={value}\n".encode() for key, value in DEFAULT_PROPERTIES.items())


def refused(text: str) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as error:
        checked_content(BASE + text.encode())
    return error.value


def test_the_lists_are_those_that_the_documentation_has() -> None:
    rows = {
        line.split("|")[1].strip(): line.split("|")[2].replace("`", "").split()
        for line in DOCS.read_text().splitlines()
        if line.startswith(("| `", "| denied"))
    }
    assert rows["`producer.` allowed"] == list(ALLOWED["producer."])
    assert rows["`consumer.` allowed"] == list(ALLOWED["consumer."])
    assert rows["denied, all that begin with"] == list(DENIED_PREFIXES)
    assert rows["denied"] == sorted(DENIED)
    assert [len(ALLOWED["producer."]), len(ALLOWED["consumer."]), len(DENIED_PREFIXES), len(DENIED)] == [14, 18, 17, 13]


@pytest.mark.parametrize(
    "line",
    [
        "offset.storage.topic=mine", "offset.storage.partitions=3", "status.storage.partitions=2",
        "offset.flush.interval.ms=500", "header.converter=org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "topic.creation.enable=false", "exactly.once.source.support=enabled", "producer.acks=all",
        "consumer.max.poll.records=7", "my.own=thing", "connections.max=1", "clientele=1",
        "config.providers=f\nconfig.providers.f.class=org.apache.kafka.common.config.provider.FileConfigProvider",
    ],
)  # fmt: skip
def test_what_is_not_denied_is_allowed(line: str) -> None:
    key, _, value = line.partition("=")
    assert checked_content(BASE + line.encode())[key] == value.partition("\n")[0]


@pytest.mark.parametrize(
    "key",
    [
        "producer.linger.ms", "producer.partitioner.class", "producer.transactional.id", "producer.bootstrap.servers",
        "consumer.max.poll.interval.ms", "consumer.group.id", "client.id", "rest.port", "metrics.sample.window.ms",
        "worker.sync.timeout.ms", "internal.key.converter", "connect.protocol", "producer.", "consumer.client.id",
        *sorted(DENIED), *(f"{prefix}x" for prefix in sorted(DENIED_PREFIXES)), *sorted(DENIED_PREFIXES),
    ],
)  # fmt: skip
def test_what_is_denied_is_named_with_what_is_legal(key: str) -> None:
    (problem,) = refused(f"{key}=1").violations
    assert problem.field == key
    assert problem.description.startswith(f"{key}: ")
    assert "cannot be set in a worker configuration: " in problem.description


def test_both_converters_have_to_be_there() -> None:
    for key in DEFAULT_PROPERTIES:
        values = {name: value for name, value in DEFAULT_PROPERTIES.items() if name != key}
        (problem,) = violations(values)
        assert problem.field == key
        assert f"{key} is missing" in problem.description
    assert [violation.field for violation in violations({"key.converter": " "})] == ["key.converter", "value.converter"]


def test_what_no_worker_would_take_is_refused_too_and_all_at_once() -> None:
    error = refused("offset.storage.partitions=many\nkey.converter=com.acme.None\nrest.port=1")
    assert {violation.field for violation in error.violations} == {"offset.storage.partitions", "rest.port"}


def test_converters_of_plugins_are_told_apart_with_what_is_theirs() -> None:
    own = {"key.converter": "StringConverter", "key.converter.x": "1", "header.converter": "com.acme.Headers"}
    theirs = {"value.converter": "com.acme.Value", "value.converter.x": "2"}
    assert converters_of_plugins(own | theirs | {"value.converters": "3"}) == theirs | {
        "header.converter": "com.acme.Headers"
    }
    assert converters_of_plugins(DEFAULT_PROPERTIES) == {}
    assert list(violations(own | theirs)) == []


def test_a_secret_is_in_no_refusal() -> None:
    error = refused("ssl.key.password=sesam\nsasl.jaas.config=x.LoginModule required password='sesam';")
    assert "sesam" not in str(error.violations) + error.message


def test_it_is_read_as_java_reads_properties() -> None:
    text = (
        b"# a comment\n! another\r\n\n  k1 : v 1 \nk2=a\\\n    b\nk3 v3\nk4\nk\\ 5=\\u00e4\\t\\x\nk1=last\n\\#k=v\\\\\n"
    )
    assert properties_of(text) == {
        "k1": "last", "k2": "ab", "k3": "v3", "k4": "", "k 5": "\xe4\tx", "#k": "v\\",
    }  # fmt: skip
    assert properties_of("ä=ö".encode()) == properties_of("ä=ö".encode("iso-8859-1")) == {"ä": "ö"}
    with pytest.raises(InvalidArgument, match=r"content: '\\\\u00zz' is not legal"):
        properties_of(b"k=\\u00zz1")


def test_it_may_not_be_large() -> None:
    assert checked_content(BASE + b"#" * (MAX_BYTES - len(BASE)))
    assert "at most 65536 bytes" in refused("#" * MAX_BYTES).message


def test_of_what_is_shown_secrets_are_hidden_and_all_else_stays() -> None:
    text = (
        BASE
        + b"# words\n\n a : b\\\n  c\ndb.password = ses\\\n  am\n#db.token=sesam\n! #x.secret: sesam\nurl=http://me:sesam@h\n"
    )
    shown = shown_content(text)
    assert b"sesam" not in shown
    assert shown.startswith(BASE + b"# words\n\n a : b\\\n  c\n")
    assert properties_of(shown) == properties_of(text) | {"db.password": "[hidden]", "url": "http://[hidden]@h"}
    assert shown_content(BASE + b"a.password=${env:P}\n") == BASE + b"a.password=${env:P}\n"


@pytest.mark.parametrize(
    ("comment", "shown"),
    [
        ("# old: password=hunter2", "# old: password=[hidden]"),
        ("# the old password is hunter2, do not use it", "# the old password is [hidden], do not use it"),
        ("! db pass: hunter2", "! db pass: [hidden]"),
        ("#API key hunter2", "#API key [hidden]"),
        ("# db.password = ${env:P}", "# db.password = ${env:P}"),
        ("# compass and bypass", "# compass and bypass"),
    ],
)
def test_secrets_in_comments_are_hidden(comment: str, shown: str) -> None:
    assert shown_content(BASE + f"{comment}\n".encode()) == BASE + f"{shown}\n".encode()
