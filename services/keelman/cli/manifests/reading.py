"""Reads manifests: of files, of the files of folders, and of the standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keelman.cli import kinds
from keelman.cli.kinds import Kind, kind_of
from keelman.cli.manifests.filling import text_of, texts
from keelman.cli.manifests.manifest import KEYS, SYSTEMS, FilePlace, Manifest, ManifestsRefused, Wrong, unknown
from keelman.cli.manifests.table import FORMS, form_of
from keelman.cli.manifests.texts import json_document, yaml_documents
from keelman.model.errors import InvalidArgument, KeelmanError

ENDINGS = (".yaml", ".yml", ".json", ".properties")
STANDARD_INPUT = "-"
CLASS, NAME = "connector.class", "name"


def read_manifests(paths: Sequence[str], *, cluster: str = "") -> list[Manifest]:
    """Returns the manifests of files, folders (with their subfolders) and, for "-", the standard input, in their order.

    Connectors whose names have no worker cluster belong to `cluster`. Raises Refused with all errors: a file that
    cannot be read, a manifest without a kind or name, two manifests of one resource.
    """
    wrong, manifests = Wrong(), list[Manifest]()
    for path in paths:
        try:
            for file in _files(path):
                manifests += _of_file(file, cluster, wrong)
        except KeelmanError as error:
            wrong.add("", error)
    first: dict[tuple[str, str], Manifest] = {}
    for manifest in manifests:
        if (other := first.setdefault(manifest.key, manifest)) is not manifest:
            wrong.add(manifest.place, InvalidArgument(f"{manifest.title} is in {other.place} too: remove one"))
    wrong.check()
    return manifests


def _files(path: str) -> Iterator[Path]:
    """Yields the files of a path."""
    folder = Path(path)
    if path == STANDARD_INPUT or folder.is_file():
        yield folder
        return
    if not folder.is_dir():
        raise InvalidArgument.of("-f", path, "a file, a folder, or - for the standard input")
    below = sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file())
    seen = [path for path in below if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not seen:
        raise InvalidArgument.of("-f", path, f"a folder with files that end with {', '.join(ENDINGS)}")
    yield from seen


def _of_file(file: Path, cluster: str, wrong: Wrong) -> list[Manifest]:
    name = "standard input" if str(file) == STANDARD_INPUT else str(file)
    try:
        text = _text(file, name)
        if file.suffix == ".properties":
            return [_of_properties(file, text, cluster)]
        documents = list(_documents(text, is_json=file.suffix == ".json"))
    except KeelmanError as error:
        wrong.add(name, error)
        return []
    manifests = []
    for number, (line, document) in enumerate(documents, 1):
        place = FilePlace(name, number, line)
        try:
            manifests.append(_manifest(document, place, cluster))
        except KeelmanError as error:
            wrong.add(place, error)
    return manifests


def _text(file: Path, name: str) -> str:
    try:
        content = sys.stdin.buffer.read() if str(file) == STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        raise InvalidArgument.of("-f", name, f"a file that can be read ({error.strerror})") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"byte {error.start}: not UTF-8") from None


def _documents(text: str, *, is_json: bool) -> Iterator[tuple[int, Any]]:
    """Yields the documents of a text with their first lines; each item of a list, or of `items`, is a document."""
    documents = [(1, json_document(text))] if is_json else yaml_documents(text)
    for line, document in documents:
        several = document
        if isinstance(document, Mapping) and set(document) == {"items"}:
            several = document["items"]
        if isinstance(several, list):
            yield from ((line, entry) for entry in several)
        else:
            yield line, document


def _of_properties(file: Path, text: str, cluster: str) -> Manifest:
    """Returns a connector if the properties have a connector class, else a worker configuration. The file's name is the
    default name."""
    import javaproperties  # noqa: PLC0415

    try:
        values = {str(k): str(v) for k, v in javaproperties.loads(text).items()}
    except javaproperties.InvalidUEscapeError:
        raise InvalidArgument("an escape in it is not \\u with four digits") from None
    place = FilePlace(str(file))
    if CLASS not in values:
        return Manifest(kinds.WORKER_CONFIGURATIONS, file.stem, place, spec={"content": text})
    name = _full_name(kinds.CONNECTORS, values.pop(NAME, file.stem), cluster)
    return Manifest(kinds.CONNECTORS, name, place, spec={"config": values})


def _manifest(document: Any, place: FilePlace, cluster: str) -> Manifest:
    if not isinstance(document, Mapping):
        raise InvalidArgument.of("document", document, "a mapping with kind, name and spec")
    for key in document:
        if key not in (*KEYS, *SYSTEMS):
            raise unknown("", key, KEYS)
    kind = _kind(document.get("kind"))
    name = document.get("name")
    if name in (None, ""):
        raise InvalidArgument(f"{kind.singular}: name: missing: the name of the resource")
    spec, labels = document.get("spec"), texts(document.get("labels") or {}, "labels")
    goal = form_of(kind).checked_goal(document.get("goal"))
    plain = _full_name(kind, text_of(name, "name"), cluster)
    return Manifest(kind, plain, place, labels, goal, {} if spec is None else spec)


def _kind(word: Any) -> Kind:
    legal = ", ".join(form.kind.singular for form in FORMS)
    if not isinstance(word, str) or not word:
        raise InvalidArgument(f"kind: missing: one of {legal}")
    try:
        kind = kind_of(word)
    except InvalidArgument:
        raise unknown("kind", word, [form.kind.singular for form in FORMS]) from None
    if all(form.kind is not kind for form in FORMS):
        raise InvalidArgument.of("kind", word, f"one of {legal}")
    return kind


def _full_name(kind: Kind, name: str, cluster: str) -> str:
    """Returns the name, for a connector with its worker cluster. Raises InvalidArgument if no cluster is named."""
    if kind is not kinds.CONNECTORS:
        return name
    owner, plain = kinds.cluster_and_name(kind, name, cluster)
    if not owner:
        raise InvalidArgument.of("name", name, "CLUSTER/NAME, or NAME with --cluster WC")
    return f"{owner}/{plain}"


__all__ = ["ManifestsRefused", "read_manifests"]
