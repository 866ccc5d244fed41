"""Values of configurations, and records, are searched and split in a time that grows as their length."""

from __future__ import annotations

import contextlib
import random
import re
import time

import pytest

from keelman.connect.config.definition import Type, parse_type
from keelman.connect.config.references import ConfigReference, references, with_references
from keelman.connect.config.secret_keys import is_secret_key, literal_secrets, shown_value
from keelman.connect.converters.json_text import loads
from keelman.connect.errors import DataError
from keelman.connect.policy.named import paths_in

KAFKAS = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
"""The regular expression of Apache Kafka's ConfigTransformer."""
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required "
LENGTH, SECONDS = 400_000, 5.0  # of a processor


@pytest.mark.parametrize("part", ["${", "${:", ":", "${a", "${a:b", "${}", "${a:b:c}"])
def test_a_long_value_is_read_once(part: str) -> None:
    text = "${" + part * (LENGTH // len(part))
    begun = time.thread_time()
    found = references(text)
    assert len(found) == (LENGTH // len(part) if part == "${a:b:c}" else 0)
    assert shown_value("comment", f"{text}=@") is not None
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize("part", ["a", "a.", "password", "password=", 'password="', "password ", "é_"])
def test_a_long_login_is_searched_once(part: str) -> None:
    begun = time.thread_time()
    literal_secrets({"sasl.jaas.config": MODULE + part * (LENGTH // len(part))})
    shown_value("sasl.jaas.config", MODULE + part * (LENGTH // len(part)) + "${a:b}")
    assert time.thread_time() - begun < SECONDS


def test_a_long_list_is_split_once() -> None:
    begun = time.thread_time()
    assert parse_type("topics", "a" + " " * LENGTH + "b , c", Type.LIST) == ["a" + " " * LENGTH + "b", "c"]
    assert len(list(paths_in({"spark.path": "/data/{a,b}," + "/x," * (LENGTH // 3)}))) == LENGTH // 3 + 2
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize("part", ["request.header.", "private_", "token1", "aB", "a.b"])
def test_a_long_key_is_read_once(part: str) -> None:
    begun = time.thread_time()
    assert is_secret_key(part * (LENGTH // len(part)) + "x") is False
    assert is_secret_key(part * (LENGTH // len(part)) + ".request.header.x-api-key-1") is True
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize("text", ['{"a": 01, "' + '\\"' * (LENGTH // 2), "[" + "0" * LENGTH + "]", '"0' * LENGTH])
def test_a_long_record_is_read_once(text: str) -> None:
    begun = time.thread_time()
    with contextlib.suppress(DataError):
        loads(text.encode())
    assert time.thread_time() - begun < SECONDS


def test_references_are_those_of_kafka() -> None:
    chance = random.Random(7)
    for _ in range(20_000):
        text = "".join(chance.choices(["${", "}", ":", "a", "$", "{"], k=chance.randint(0, 14)))
        expected = [ConfigReference(match[1], match[3] or "", match[4]) for match in KAFKAS.finditer(text)]
        assert references(text) == expected, text
        assert with_references(text, lambda written, _: f"<{written}>") == KAFKAS.sub(r"<\g<0>>", text)
