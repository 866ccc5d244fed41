"""Pages of a list."""

from __future__ import annotations

import base64

import pytest

from keelman.model.errors import InvalidArgument
from keelman.rpc.pages import key_of, page, page_limit, token_for


def test_all_pages_together_are_the_list() -> None:
    names = [f"n{i:03}" for i in range(25)][::-1]
    seen: list[str] = []
    token = ""
    for expected in (10, 10, 5):
        cut, token = page(names, str, 10, token)
        assert len(cut) == expected
        seen += cut
    assert token == ""
    assert seen == sorted(names)


def test_a_page_stays_where_it_was_while_things_come_and_go() -> None:
    _, token = page(["a", "b", "c", "d"], str, 2, "")
    assert page(["0", "a", "c", "d"], str, 2, token) == (["c", "d"], "")


def test_a_full_last_page_has_no_successor() -> None:
    assert page(["a", "b"], str, 2, "") == (["a", "b"], "")
    assert page([], str, 2, "") == ([], "")


def test_sizes() -> None:
    assert (page_limit(0), page_limit(1), page_limit(1000)) == (100, 1, 1000)
    for size in (-1, 1001):
        with pytest.raises(InvalidArgument, match=r"page_size: .* is not legal: 0 to 1000"):
            page_limit(size)


@pytest.mark.parametrize("key", ["a", "cluster\0name", "ü/日", "x" * 500])
def test_a_token_carries_any_key(key: str) -> None:
    assert key_of(token_for(key)) == key


@pytest.mark.parametrize(
    "token",
    ["abc", "!!!!", "ÄÖ", base64.urlsafe_b64encode(b"2x").decode(), base64.urlsafe_b64encode(b"1\xff").decode()],
)
def test_a_foreign_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgument, match="page_token"):
        key_of(token)
