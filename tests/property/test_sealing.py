"""A sealed value opens unchanged, only in its own place, and shows no secret."""

from __future__ import annotations

import json
import os
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keelman.connect.config.secret_keys import shown_json
from keelman.model.errors import FailedPrecondition
from keelman.state.database.sealing import PREFIX, Sealer

SEALER, OTHER = (Sealer(os.urandom(32), Path(f"/keys/{name}")) for name in ("mine", "other"))
KEYS = st.sampled_from(
    ("ssl.key.password", "producer.sasl.jaas.config", "token", "topic", "extra", "properties", "url")
)
TEXTS = st.text(string.printable + "\0é\U0001f511", max_size=12)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS,
    TEXTS.map("{}".format), TEXTS.map((PREFIX + "{}").format), TEXTS.map("https://u:{}@host".format),
)  # fmt: skip
JSON = st.dictionaries(
    KEYS,
    st.recursive(
        VALUES, lambda value: st.lists(value, max_size=3) | st.dictionaries(KEYS, value, max_size=3), max_leaves=8
    ),
    max_size=4,
)


@given(JSON)
def test_what_is_sealed_opens_as_it_was(value: dict[str, Any]) -> None:
    sealed = json.loads(json.dumps(SEALER.seal(value, "workload", "a", "spec")))
    assert SEALER.open(sealed, "workload", "a", "spec") == value
    assert shown_json(value) == value or sealed != value


@given(st.text(string.ascii_letters, min_size=8, max_size=12))
def test_nothing_secret_is_left_in_it(secret: str) -> None:
    value = {
        "properties": {"ssl.key.password": secret, "topic": "t", "url": f"http://me:{secret}@h", "ref": "${file:a:b}"},
        "annotations": {"extra": {"credentials": {"all": [secret, {"deep": secret}]}, "shown": 1}},
    }
    sealed = SEALER.seal(value, "worker_cluster", "demo", "spec")
    assert secret not in json.dumps(sealed)
    assert sealed["properties"]["topic"] == "t"
    assert sealed["properties"]["ref"] == "${file:a:b}"
    assert sealed["annotations"]["extra"]["shown"] == 1
    assert SEALER.seal(value, "worker_cluster", "demo", "spec") != sealed


def test_a_sealed_value_opens_in_its_own_place_alone() -> None:
    sealed = SEALER.seal({"password": "one", "token": "two"}, "workload", "a", "spec")
    moved = {"password": sealed["token"], "token": sealed["password"]}
    for value, place in (
        (sealed, ("workload", "b", "spec")),
        (sealed, ("workloa", "da", "spec")),
        (moved, ("workload", "a", "spec")),
    ):
        with pytest.raises(FailedPrecondition) as caught:
            SEALER.open(value, *place)
        assert "/keys/mine" in str(caught.value)
    with pytest.raises(FailedPrecondition, match="/keys/other"):
        OTHER.open(sealed, "workload", "a", "spec")
    for broken in (PREFIX, PREFIX + "!", sealed["token"][:-6], sealed["token"][:-2] + "AA"):
        with pytest.raises(FailedPrecondition):
            SEALER.open({"token": broken}, "workload", "a", "spec")


def test_the_key_is_in_no_text_of_the_sealer() -> None:
    assert repr(SEALER.key)[2:-1] not in repr(SEALER)
