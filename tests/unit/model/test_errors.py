"""Errors and names: the message for a person and the fields for a program."""

from __future__ import annotations

import pytest

from keelman.model.errors import Conflict, InvalidArgument, KeelmanError, Violation
from keelman.model.rules.names import LEGAL_NAME, checked_name


def test_the_usual_message_names_field_value_and_what_is_legal() -> None:
    error = InvalidArgument.of("spec.count", -1, "1 or more")
    assert str(error) == error.message == "spec.count: -1 is not legal: 1 or more"
    assert error.violations == (Violation("spec.count", error.message),)
    assert (error.reason, error.metadata) == ("INVALID_ARGUMENT", {"field": "spec.count"})


def test_a_reason_given_replaces_the_classes_own() -> None:
    assert Conflict("no").reason == "CONFLICT"
    assert Conflict("no", reason="ETAG_OLD").reason == "ETAG_OLD"
    assert Conflict.reason == "CONFLICT"


def test_every_class_has_a_reason_of_its_own_and_stands_in_the_tree() -> None:
    classes = KeelmanError.__subclasses__()
    import keelman.model.errors as module  # noqa: PLC0415

    assert len({c.reason for c in classes}) == len(classes)
    assert all(f"\n  {c.__name__} " in (module.__doc__ or "") for c in classes)


@pytest.mark.parametrize("name", ["a", "0", "demo", "a.b-c_d", "a" * 63, "node-1"])
def test_legal_names(name: str) -> None:
    assert checked_name("name", name) == name


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", ".a", "a/b", "a b", "ä", "a" * 64, "a\n", "a\0"])
def test_illegal_names(name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        checked_name("spec.name", name)
    assert caught.value.message == f"spec.name: {name!r} is not legal: {LEGAL_NAME}"
