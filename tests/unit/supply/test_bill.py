"""The bill of materials is valid CycloneDX and has each part with its sums; what jars and locks are read into."""

import json
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from tools.supply import parts
from tools.supply.parts import MAVEN, PYPI, Part, locked_jars, locked_packages, merged, spark_jars
from tools.supply.sbom import bill

SUM = "0" * 63


def jar(file: Path, *coordinates: str) -> None:
    """Writes a jar that contains the Maven properties of these coordinates."""
    with zipfile.ZipFile(file, "w") as archive:
        for text in coordinates:
            group, artifact, version = text.split(":")
            properties = f"#made\nversion={version}\ngroupId={group}\nartifactId={artifact}\n"
            archive.writestr(f"META-INF/maven/{group}/{artifact}/pom.properties", properties)


def test_the_bill_is_valid_and_the_same_each_time(tmp_path: Path) -> None:
    folder = tmp_path / "jars"
    folder.mkdir()
    jar(folder / "outer-1.0.jar", "a.b:outer:1.0", "c:inner:2.0")
    jar(folder / "outer-1.0-linux.jar", "a.b:outer:1.0")
    found = merged([*spark_jars(folder), *spark_jars(folder)])
    found = [*found, Part(PYPI, "p", "1.0+x", "wheel.txt", sums=(SUM + "1", SUM + "2"))]
    document = bill(found)
    text = json.dumps(document)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert json.dumps(bill(found)) == text
    outer, package = document["components"]
    assert len(outer["hashes"]) == 2  # one jar for all, one for Linux
    assert (outer["group"], outer["name"], outer["purl"]) == ("a.b", "outer", "pkg:maven/a.b/outer@1.0")
    assert [c["purl"] for c in outer["components"]] == ["pkg:maven/c/inner@2.0"]
    assert package["purl"] == "pkg:pypi/p@1.0%2Bx"
    assert [h["content"][-1] for h in package["hashes"]] == ["1", "2"]


def test_coordinates_of_jars(tmp_path: Path) -> None:
    jar(tmp_path / "netty-x-4.2.13.Final-linux-x86_64.jar", "io.netty:netty-x:4.2.13.Final")
    jar(tmp_path / "xz-1.12.jar")
    jar(tmp_path / "json4s-ast_2.13-4.0.7.jar")
    assert [(part.name, part.version) for part in spark_jars(tmp_path)] == [
        ("org.json4s:json4s-ast_2.13", "4.0.7"), ("io.netty:netty-x", "4.2.13.Final"), ("org.tukaani:xz", "1.12"),
    ]  # fmt: skip
    jar(tmp_path / "unknown-1.0.jar")
    with pytest.raises(SystemExit, match=r"unknown-1\.0\.jar does not tell its coordinates"):
        list(spark_jars(tmp_path))


def test_a_lock_file_of_pip(tmp_path: Path) -> None:
    file = tmp_path / "lock.txt"
    file.write_text(
        "# by pip-compile\nSome_Name==1.0 ; python_version < '4' \\\n"
        f"    --hash=sha256:{SUM}1 \\\n    --hash=sha256:{SUM}2\n    # via x\nother==2\n"
    )
    first = Part(PYPI, "some-name", "1.0", "lock.txt", sums=(SUM + "1", SUM + "2"))
    assert list(locked_packages(file)) == [first, Part(PYPI, "other", "2", "lock.txt")]


@pytest.mark.parametrize("file", parts.JAR_LOCKS, ids=lambda file: file.stem)
def test_every_lock_of_jars_is_read(file: Path) -> None:
    outer = [part for part in locked_jars(file) if not part.inside]
    assert outer
    assert all(part.ecosystem == MAVEN and len(part.sums[0]) == 64 for part in outer)


def test_the_wheels_lock_is_what_is_tested() -> None:
    """Every package that the wheel installs has the version and the sums that tests run with."""
    tested = {(part.name, part.version): part.sums for part in locked_packages(parts.REQUIREMENTS / "run.txt")}
    wheel = {(part.name, part.version): part.sums for part in locked_packages(parts.WHEEL)}
    assert wheel.items() <= tested.items()
    assert len(wheel) > 40
