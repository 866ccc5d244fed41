"""Names of documents are encoded in events and tables, and decoded."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keelman.model.document import Document, check_document_key, document_name, parts_of_name
from keelman.model.errors import InvalidArgument
from keelman.state.nouns.document import NOUN
from keelman.state.resources.snapshot import DOCUMENT, Snapshot

TIME = datetime(2026, 1, 1, tzinfo=UTC)
PART = st.text(st.sampled_from("ab/%2F5"), max_size=6)


@given(PART, PART, PART)
def test_a_name_says_kind_scope_and_key(kind: str, scope: str, key: str) -> None:
    assert parts_of_name(document_name(kind, scope, key)) == (kind, scope, key)
    assert document_name(kind, scope, key).count("/") == 2


def test_a_document_is_in_the_index_under_its_kind_and_scope() -> None:
    snapshot = Snapshot()
    documents = [Document(k, s, "key", "u", TIME, TIME) for k, s in (("a", "s"), ("a", ""), ("b", "s"))]
    for stored in documents:
        snapshot.put(stored)
    assert [document.kind for document in snapshot.documents_of("a", "s")] == ["a"]
    assert len(snapshot.documents_of("a", "")) == len(snapshot.documents_of("", "s")) == 2
    snapshot.drop(DOCUMENT, documents[0].name)
    assert snapshot.documents_of("a", "s") == []


def test_a_row_holds_all_of_it() -> None:
    document = Document("k", "s/t", "%", "u", TIME, TIME, {"a": [1]}, {"password": "p"}, "7")
    assert NOUN.from_row(**{key: value for key, value in NOUN.to_row(document).items() if key != "noun"}) == document


@pytest.mark.parametrize(
    ("kind", "scope", "key", "named"),
    [("K", "", "k", "x.kind"), ("k", "\x7f", "k", "x.scope"), ("k", "", "", "x.key"), ("k", "", "\t", "x.key")],
)
def test_what_is_not_legal_is_named(kind: str, scope: str, key: str, named: str) -> None:
    check_document_key("", "ohara.pipeline", "", "käse/\U0001f600")
    with pytest.raises(InvalidArgument, match=named):
        check_document_key("x.", kind, scope, key)
