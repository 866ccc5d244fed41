"""Which versions an advisory affects, by a database of OSV and by the kept list."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tools.supply import audit
from tools.supply.advisories import findings, read_database, read_kept
from tools.supply.audit import KEPT, NOTES, Note, judged, read_notes
from tools.supply.parts import MAVEN, PYPI, Part

DATABIND = "com.fasterxml.jackson.core:jackson-databind"


def record(
    ecosystem: str = MAVEN, name: str = DATABIND, *, versions: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    """A record of OSV for versions below 2.12.7.1, and from 2.13.0 below 2.13.4.2."""
    ranges = [
        {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.12.7.1"}]},
        {"type": "ECOSYSTEM", "events": [{"introduced": "2.13.0"}, {"fixed": "2.13.4.2"}]},
        {"type": "GIT", "events": [{"introduced": "0"}]},
    ]
    affected = {"package": {"ecosystem": ecosystem, "name": name}, "ranges": ranges, "versions": list(versions)}
    return {"id": "GHSA-1", "aliases": ["CVE-1"], "summary": "nested arrays", "affected": [affected], **more}


def fixed_in(folder: Path, part: Part) -> list[str]:
    """The versions that mend the part by the database."""
    return [fixed for _, _, fixed in findings([part], read_database(folder))]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.9.1", ["2.12.7.1"]), ("2.12.7.1", []), ("2.13.4", ["2.13.4.2"]), ("2.13.4.2", []), ("2.21.2", [])],
)
def test_ranges_of_a_record(tmp_path: Path, version: str, expected: list[str]) -> None:
    (tmp_path / "one.json").write_text(json.dumps(record()))
    assert fixed_in(tmp_path, Part(MAVEN, DATABIND, version, "here")) == expected


def test_last_affected_and_named_versions_have_no_fix(tmp_path: Path) -> None:
    document = record(versions=("9.9",))
    document["affected"][0]["ranges"] = [
        {"type": "ECOSYSTEM", "events": [{"last_affected": "1.5"}, {"introduced": "1.2"}]}
    ]
    (tmp_path / "one.json").write_text(json.dumps(document))
    found = {v: fixed_in(tmp_path, Part(MAVEN, DATABIND, v, "here")) for v in ("1.1", "1.2", "1.5", "1.6", "9.9")}
    assert found == {"1.1": [], "1.2": [""], "1.5": [""], "1.6": [], "9.9": [""]}


def test_a_zip_of_a_package_index_with_other_spelling_and_withdrawn_records(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("a.json", json.dumps(record(PYPI, "Some_Package")))
        archive.writestr("b.json", json.dumps(record(PYPI, "some-package", id="PYSEC-1")))  # an alias of the first
        archive.writestr("c.json", json.dumps(record(PYPI, "some-package", id="X", aliases=[], withdrawn="2026-01-01")))
        archive.writestr("d.json", json.dumps(record("npm", "some-package", id="Y", aliases=[])))
    assert fixed_in(tmp_path, Part(PYPI, "some-package", "2.13.0", "here")) == ["2.13.4.2"]
    assert fixed_in(tmp_path / "all.zip", Part(PYPI, "some-package", "2.13.0rc1", "here")) == []


def test_an_empty_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no advisory"):
        read_database(tmp_path)


def test_a_note_is_about_one_version_and_place(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(record()))
    parts = [Part(MAVEN, DATABIND, "2.13.4", "Spark"), Part(MAVEN, DATABIND, "2.13.4", "kafka-1")]
    notes = [Note("com.fasterxml.*", "2.13.4", "Spark", frozenset({"CVE-1"}), "not reached")]
    rows = judged([*parts, Part(MAVEN, DATABIND, "2.13.3", "Spark")], read_database(tmp_path), notes)
    assert [(row.part.origin, row.part.version, row.note is not None) for row in rows] == [
        ("Spark", "2.13.4", True), ("kafka-1", "2.13.4", False), ("Spark", "2.13.3", False),
    ]  # fmt: skip


@pytest.mark.parametrize(("version", "code"), [("2.13.4.2", 0), ("2.13.4", 1)])
def test_the_exit_code_tells_what_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: str, code: int
) -> None:
    (tmp_path / "one.json").write_text(json.dumps(record()))
    monkeypatch.setattr(audit, "audited", lambda: [Part(MAVEN, DATABIND, version, "kafka-1")])
    assert audit.main({"OSV_DATABASE": str(tmp_path)}) == code
    assert ("OPEN: nested arrays" in capsys.readouterr().out) == bool(code)


def test_every_note_is_about_an_advisory_of_the_kept_list() -> None:
    _, kept = read_kept(KEPT)
    known = {name for entries in kept.values() for affected in entries for name in affected.ids}
    unknown = [note for note in read_notes(NOTES) if not note.advisories <= known]
    assert not unknown
    assert all(len(note.reason) > 20 for note in read_notes(NOTES))
