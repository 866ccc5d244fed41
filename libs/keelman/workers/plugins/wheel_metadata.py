"""Finds the connectors of a wheel from its metadata and the text of its modules; imports nothing."""

from __future__ import annotations

import configparser
import email
import re

from keelman.model.plugins.plugin import PluginClass
from keelman.workers.plugins.archive import Archive
from keelman.workers.plugins.versions import text_of

GROUP = "keelman.connectors"
_ENTRY = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_DIRECTION = re.compile(r"^\s+direction\b[^=\n]*=\s*(?:\w+\.)*Direction\.(SOURCE|SINK)\b", re.MULTILINE)
_VERSION = re.compile(r"""^\s+version\b[^=\n]*=\s*["']([^"'\n]{1,63})["']""", re.MULTILINE)


def wheel_classes(archive: Archive, path: str, problems: list[str]) -> list[PluginClass]:
    """Returns the connectors that a wheel's entry points of `keelman.connectors` name. Errors are added to
    `problems`."""
    where = path or "the wheel"
    info = {e.path.rpartition("/")[2]: e for e in archive.entries if re.fullmatch(r"[^/]+\.dist-info/[^/]+", e.path)}
    if "METADATA" not in info:
        problems.append(f"{where}: has no dist-info/METADATA: not a wheel")
        return []
    if "entry_points.txt" not in info:
        return []
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment]
    try:
        parser.read_string(text_of(archive, info["entry_points.txt"]))
    except configparser.Error as error:
        problems.append(f"{where}: entry_points.txt cannot be read: {str(error).splitlines()[0]}")
        return []
    if not parser.has_section(GROUP):
        return []
    version = str(email.message_from_string(text_of(archive, info["METADATA"]))["Version"] or "").strip()
    files = {_module(e.path): e for e in archive.entries if e.path.endswith(".py")}
    classes = []
    for name, value in parser.items(GROUP):
        entry = _ENTRY.match(value.strip())
        if entry is None:
            problems.append(f"{where}: entry point {name} = {value}: expected module:Class")
        elif entry[1] not in files:
            problems.append(f"{where}: entry point {name} = {value}: no module {entry[1]} in it")
        else:
            kind, own = _from_body(text_of(archive, files[entry[1]]), entry[2])
            kind = kind or ("sink" if "sink" in name.lower() else "source")
            classes.append(PluginClass(name, kind, own or version, "python", path))
    return sorted(classes)


def wheel_version(archive: Archive) -> tuple[str, str]:
    """Returns name and version in a wheel's METADATA; empty ones without it."""
    for entry in archive.entries:
        if re.fullmatch(r"[^/]+\.dist-info/METADATA", entry.path):
            fields = email.message_from_string(text_of(archive, entry))
            return str(fields["Name"] or "").strip(), str(fields["Version"] or "").strip()
    return "", ""


def _module(path: str) -> str:
    parts = path.removesuffix(".py").split("/")
    if parts[0].endswith(".data") and len(parts) > 2 and parts[1] in ("purelib", "platlib"):
        parts = parts[2:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _from_body(text: str, cls: str) -> tuple[str, str]:
    """Returns a class's direction of copying and its version from its body; empty if a base class may have them."""
    begin = re.search(rf"^class\s+{re.escape(cls)}\b.*\n", text, re.MULTILINE)
    body = "" if begin is None else re.split(r"^[A-Za-z_@]", text[begin.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    direction, version = _DIRECTION.search(body), _VERSION.search(body)
    return direction[1].lower() if direction else "", version[1] if version else ""
