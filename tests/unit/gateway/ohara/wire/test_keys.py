"""The keys of Ohara's objects: three forms, their legal words, their printed form, their names in keelman."""

from __future__ import annotations

from typing import Any

import pytest

from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.gateway.ohara.wire.errors import BAD_VALUE, OharaError
from keelman.gateway.ohara.wire.keys import ObjectKey, checked_key, key_of, own_name, shown_key
from keelman.model.rules.names import checked_name

WK = ObjectKey("default", "wk")


@pytest.mark.parametrize("form", ["wk", {"name": "wk"}, {"group": "default", "name": "wk"}])
def test_the_three_forms_are_one_key(form: Any) -> None:
    assert key_of(form) == WK
    assert str(key_of(form)) == '{"group":"default","name":"wk"}'
    assert key_of(form).json == {"group": "default", "name": "wk"}


@pytest.mark.parametrize("form", ["", {"name": ""}, {"group": "", "name": "wk"}, {"group": "g"}, 1, [], True, None, {}])
def test_what_is_no_key_is_refused(form: Any) -> None:
    with pytest.raises(OharaError) as caught:
        key_of(form, "brokerClusterKey")
    assert (caught.value.status, caught.value.code) == (400, BAD_VALUE)


@pytest.mark.parametrize("word", ["a", ".", "..", ".wk.", "0.1", "a" * 25])
def test_words_of_digits_letters_and_dots_are_legal(word: str) -> None:
    assert checked_key(word, word) == ObjectKey(word, word)


@pytest.mark.parametrize("word", ["", "ABC", "a-b", "a_b", "a/b", "ü", "a" * 26, "wk\n"])
def test_other_words_are_refused_in_oharas_words(word: str) -> None:
    with pytest.raises(OharaError) as caught:
        checked_key("default", word)
    assert caught.value.message == f'the value "{word}" is not matched to [a-z0-9\\.]{{1,25}}$'


def test_names_of_ours_are_legal_and_another_for_each_key() -> None:
    keys = [WK, ObjectKey("wk", "default"), ObjectKey("default", ".wk."), ObjectKey("a.b", "c"), ObjectKey("a", "b.c")]
    names = [checked_name("name", own_name(key)) for key in keys]
    assert len(set(names)) == len(keys)
    assert names == [own_name(key) for key in keys]


def test_what_was_made_past_this_api_is_of_the_group_default() -> None:
    assert shown_key("oh-1", ObjectKey("g", ".n").origin) == ObjectKey("g", ".n")
    assert shown_key("demo", Origin()) == ObjectKey("default", "demo")
    assert shown_key("my-cluster", Origin()) is None
    assert shown_key("demo", Origin(api="other", key="x")) is None
