"""Selectors: the syntax after -l, and the labels that match."""

from __future__ import annotations

import pytest

from keelman.cli.selectors import selector
from keelman.model.errors import InvalidArgument

LABELS = {"app": "shop", "tier": "1"}


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("app=shop", True),
        ("app==shop", True),
        ("app!=shop", False),
        ("app=other", False),
        ("app", True),
        ("!app", False),
        ("!zone", True),
        ("zone", False),
        ("zone!=a", True),
        ("app in (shop,store)", True),
        ("app in (store)", False),
        ("app notin (store, mill)", True),
        ("zone notin (a)", True),
        ("app in (shop,x),tier=1", True),
        ("tier=2,app in (shop)", False),
        (" app = shop , tier != 2 ", True),
        ("empty=", False),
    ],
)
def test_labels_are_taken_or_not(text: str, takes: bool) -> None:
    assert selector([text]).takes(LABELS) is takes


def test_several_have_to_hold_together() -> None:
    assert selector(["app=shop", "tier=1"]).takes(LABELS)
    assert not selector(["app=shop", "tier=2"]).takes(LABELS)
    assert selector([]).takes({})
    assert selector(["app=shop,tier in (1,2),!x,y!=1"]).equal == {"app": "shop"}


@pytest.mark.parametrize(
    "text", ["", "=a", "a in", "a in ()", "a in (b", "a,,b", "a=b,", "(a)", "a in (b,)", "!", "a b"]
)
def test_another_text_is_refused_with_what_is_legal(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"-l: .* is not legal: key=value, key!=value, key in"):
        selector([text])
