"""Files with manifests: split into documents, and refused with the place of every error."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from keelman.cli.manifests.manifest import ManifestsRefused
from keelman.cli.manifests.reading import read_manifests
from keelman.cli.manifests.texts import MOST_BYTES, json_document, yaml_documents
from keelman.model.errors import InvalidArgument


def test_texts_stay_as_they_were_written() -> None:
    text = "{a: 010, b: 1:30, c: off, d: 2026-01-01, e: 1.10, f: true, g: null, h: 5, i: '5'}"
    ((line, answer),) = yaml_documents(text)
    assert line == 1
    assert answer["a"] == "010"
    assert (answer["b"], answer["c"], answer["d"]) == ("1:30", "off", "2026-01-01")
    assert (answer["e"], answer["e"].text, answer["f"], answer["g"]) == (1.1, "1.10", True, None)
    assert (answer["h"], answer["i"]) == (5, "5")
    assert json_document('{"x": 1.10}')["x"].text == "1.10"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3, column 1: not YAML: a: twice"),
        ("a: [1", "line 1"),
        ("? [a]\n: b", "a key must be a text"),
        ("a: !!python/object:os.system x", "not YAML"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match="not YAML") as raised:
        list(yaml_documents(text))
    assert message in raised.value.message


def test_the_standard_input_is_read_beside_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("kind: wc\nname: one\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: wc\nname: two\n---\nkind: wc\nname: three\n")))
    manifests = read_manifests([str(tmp_path / "a.yaml"), "-"])
    assert [manifest.title for manifest in manifests] == [f"worker-cluster/{name}" for name in ("one", "two", "three")]


def test_files_folders_and_lists_are_read_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text("kind: wc\nname: two\n---\n---\nkind: topic\nname: three\nlabels: {a: 1}\n")
    (tmp_path / "a.json").write_text('{"items": [{"kind": "secrets", "name": "one", "uid": "u", "status": {}}]}')
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "x.properties").write_text("connector.class=C\ntopics=a\\:b\n")
    (tmp_path / "below" / "w.properties").write_text("key.converter=x\n")
    (tmp_path / ".hidden.yaml").write_text("kind: nothing")
    (tmp_path / "notes.txt").write_text("kind: nothing")
    manifests = read_manifests([str(tmp_path)], cluster="demo")
    assert [manifest.title for manifest in manifests] == [
        "secret/one",
        "worker-cluster/two",
        "topic/three",
        "worker-configuration/w",
        "connector/demo/x",
    ]
    assert manifests[2].place.line == 5
    assert manifests[2].labels == {"a": "1"}
    assert manifests[4].spec == {"config": {"connector.class": "C", "topics": "a:b"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x", "kind: missing: one of secret"),
        ("kind: topik\nname: x", "kind.topik: unknown field: did you mean 'topic'?"),
        ("kind: copy-run\nname: x", "kind: 'copy-run' is not legal"),
        ("kind: topic", "topic: name: missing"),
        ("kind: topic\nname: x\nspek: {}", "spek: unknown field: did you mean 'spec'? one of goal, kind"),
        ("kind: topic\nname: x\ngoal: RUNNING", "goal: 'RUNNING' is not legal: for topics one of PRESENT, ABSENT"),
        ("kind: secret\nname: x\ngoal: RUNNING", "goal: not for secrets"),
        ("kind: connector\nname: x", "name: 'x' is not legal: CLUSTER/NAME"),
        ("- 1", "document: 1 is not legal"),
        ("kind: topic\nname: x\n---\nkind: tp\nname: x", "topic/x is in"),
        ("kind: [a", "line 1"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    (file := tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ManifestsRefused) as raised:
        read_manifests([str(file)])
    (line,) = raised.value.lines
    assert line.startswith(str(file))
    assert message in line


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: topic\n---\nname: x\n")
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.yaml").write_bytes(b"\xff")
    with pytest.raises(ManifestsRefused) as raised:
        read_manifests([str(tmp_path), str(tmp_path / "none.yaml")])
    assert len(raised.value.lines) == 5
    assert raised.value.exit_code == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestsRefused, match="a folder with files that end with"):
        read_manifests([str(tmp_path / "empty")])


def bomb(levels: int) -> str:
    """Returns lists, each of which refers to the list before it ten times."""
    lists = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lists += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lists)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb(9), "its aliases stand for [0-9]{10} values: a document may have 1000000"),
        ("a: &a [*a]", "nested too deeply"),
        ("[" * 20_000 + "]" * 20_000, "nested too deeply: a document may have 100 levels|not YAML"),
    ],
)
def test_texts_that_are_too_much_are_refused_at_once(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        list(yaml_documents(text))


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="nested too deeply"):
        json_document("[" * 20_000 + "]" * 20_000)


def test_large_texts_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(InvalidArgument, match="a file of manifests may have 16777216; use several"):
        json_document(" " * (MOST_BYTES + 1))
