"""Writes the bill of materials of a release, CycloneDX 1.6 as JSON: `python -m tools.supply.sbom FILE`.

It has every Python package that the wheel with all extras installs and every jar that is fetched or comes with PySpark,
each with its SHA-256 sums; libraries inside a jar are components of that jar. The same parts give the same file.
"""

from __future__ import annotations

import json
import sys
import tomllib
import uuid
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.supply.parts import ROOT, Part, shipped

SPEC = "1.6"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
Bill = dict[str, Any]


def bill(parts: Sequence[Part]) -> Bill:
    """Returns the document. A part of several origins comes once for each: their sums may differ."""
    inner: dict[tuple[str, str], list[Part]] = defaultdict(list)
    for part in parts:
        if part.inside:
            inner[part.origin, part.inside].append(part)
    outer = [part for part in parts if not part.inside]
    components = [component(part, inner.get((part.origin, jar_name(part, inner)), ())) for part in outer]
    product = {
        "type": "application", "bom-ref": "keelman", "name": PROJECT["name"], "version": PROJECT["version"],
        "purl": f"pkg:pypi/{PROJECT['name']}@{PROJECT['version']}",
        "licenses": [{"license": {"id": PROJECT["license"]}}],
    }  # fmt: skip
    text = json.dumps([product, components], sort_keys=True)
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}",
        "version": 1,
        "metadata": {"component": product},
        "components": components,
        "dependencies": [{"ref": "keelman", "dependsOn": [c["bom-ref"] for c in components]}],
    }


def jar_name(part: Part, inner: dict[tuple[str, str], list[Part]]) -> str:
    """Returns the name under which a jar's inner parts name it; empty without such parts."""
    stem = f"{part.name.rpartition(':')[2]}-{part.version}"
    names = [jar for origin, jar in inner if origin == part.origin]
    return next((jar for jar in names if jar == f"{stem}.jar" or jar.startswith(f"{stem}-")), "")


def component(part: Part, inside: Sequence[Part] = ()) -> Bill:
    """Returns a part as a component, with the parts inside it."""
    group, _, name = part.name.rpartition(":")
    where = f"{part.origin}/{part.inside}" if part.inside else part.origin
    found: Bill = {
        "type": "library", "bom-ref": f"{where}/{part.purl}", "name": name, "version": part.version, "purl": part.purl,
        "properties": [{"name": "keelman:from", "value": part.origin}],
    }  # fmt: skip
    if group:
        found["group"] = group
    if part.sums:
        found["hashes"] = [{"alg": "SHA-256", "content": value} for value in part.sums]
    if inside:
        found["components"] = [component(other) for other in inside]
    return found


def main(arguments: Sequence[str]) -> int:
    """Writes the file and prints how many components it has."""
    parts = shipped()
    text = json.dumps(bill(parts), indent=1) + "\n"
    Path(arguments[0]).write_text(text, encoding="utf-8")
    print(f"{len(parts)} components")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
