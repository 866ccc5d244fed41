"""Runs the tests of published Java plugins and writes the results into docs/java-plugins.md.

`python -m support.java.proofs [word]` with `tests` on the path; `make java-proofs [ONLY=word]`. With a word only the
tests run whose file contains it; other rows stay unchanged. The exit code tells whether all are proven.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from support.java.iceberg import ICEBERG_SINK
from support.java.published import (
    DEBEZIUM_JDBC,
    DEBEZIUM_MARIADB,
    DEBEZIUM_POSTGRES,
    FILE_SINK,
    FILE_SOURCE,
    FILES,
    ICEBERG,
    JDBC,
    MARIADB,
    MIRROR,
    MONGO,
    MONGO_SINK,
    MONGO_SOURCE,
    POSTGRES,
)
from support.places import ROOT

PAGE = ROOT / "docs" / "java-plugins.md"
BEGIN, END = "<!-- proofs: written by make java-proofs -->", "<!-- end of proofs -->"
COMPONENT = "tests/component"
JAVA = f"{COMPONENT}/connectors/java"
MIRROR_CLASS = "org.apache.kafka.connect.mirror.Mirror"
SECONDS = 3600
COLUMNS = "| class | version | what is run | result |\n|---|---|---|---|\n"


@dataclass(frozen=True, slots=True)
class Proof:
    """The tests of a class: a file, and the beginning of their names."""

    classes: tuple[str, ...]
    version: str
    what: str
    file: str
    tests: str = "test_"


PROOFS: Sequence[Proof] = (
    Proof(
        (DEBEZIUM_POSTGRES,),
        POSTGRES.version,
        "snapshot and stream of a PostgreSQL that changes, exactly-once; kill -9 of the slot and of the worker, in "
        "mid-snapshot and mid-stream; the replication slot is confirmed on",
        f"{JAVA}/test_debezium.py",
        "test_snapshot_and_stream_through_kills_of_slots",
    ),
    Proof(
        (DEBEZIUM_POSTGRES,),
        POSTGRES.version,
        "kill -9 of PostgreSQL in mid-snapshot and mid-stream",
        f"{JAVA}/test_debezium.py",
        "test_snapshot_and_stream_through_kills_of_postgresql",
    ),
    Proof(
        (DEBEZIUM_MARIADB,),
        MARIADB.version,
        "snapshot and stream of a MariaDB 10.11 that changes, exactly-once, its history of schemas in Kafka; kill -9 "
        "of the slot in mid-snapshot and mid-stream, of worker and MariaDB in mid-stream",
        f"{JAVA}/test_debezium_mariadb.py",
    ),
    Proof(
        (DEBEZIUM_POSTGRES, DEBEZIUM_JDBC),
        f"{POSTGRES.version}, {JDBC.version}",
        "a cluster of Kafka Connect with both is taken over and given back: one snapshot, nothing lost or doubled, the "
        "target equal to the source",
        f"{JAVA}/test_take_over.py",
    ),
    Proof(
        (DEBEZIUM_JDBC, MONGO_SOURCE, MONGO_SINK),
        f"{JDBC.version}, {MONGO.version}",
        "listed, described, configurations judged",
        f"{JAVA}/test_published.py",
    ),
    Proof(
        (FILE_SOURCE,),
        FILES.version,
        "file to Kafka exactly-once through transforms and a predicate, with a kill -9 of its slot",
        f"{COMPONENT}/worker/java/test_plugins.py",
        "test_a_java_source_copies_exactly_once_through_transforms",
    ),
    Proof(
        (FILE_SINK,),
        FILES.version,
        "Kafka to file, nothing lost over a kill -9 of its slot; its offsets can be set",
        f"{COMPONENT}/worker/java/test_plugins.py",
        "test_a_java_sink_loses_nothing_and_its_offsets_can_be_set",
    ),
    Proof(
        (ICEBERG_SINK,),
        ICEBERG.version,
        "Kafka to a table in a catalog of files, two tasks and a control topic; kill -9 of the slot and of the worker: "
        "each row is in the table once",
        f"{JAVA}/test_iceberg.py",
    ),
    Proof(
        tuple(f"{MIRROR_CLASS}{kind}Connector" for kind in ("Source", "Checkpoint", "Heartbeat")),
        MIRROR.version,
        "their tasks copy records, checkpoints and heartbeats",
        f"{JAVA}/test_mirror_tasks.py",
    ),
    Proof(
        tuple(f"{MIRROR_CLASS}{kind}Connector" for kind in ("Source", "Checkpoint", "Heartbeat")),
        MIRROR.version,
        "as connectors of a worker: each record once over a kill -9 of the slot, a topic that comes later, heartbeats, "
        "checkpoints, a group's offsets",
        f"{JAVA}/test_mirror_connectors.py",
    ),
)


def main(only: str) -> int:
    """Runs the tests and writes the table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    table, _, after = rest.partition(END)
    results = outcomes(sorted({proof.file for proof in PROOFS if only in proof.file}))
    rows = [row(proof, results) if only in proof.file else kept(proof, table) for proof in PROOFS]
    head = f"Run on {time.strftime('%Y-%m-%d')} with `make java-proofs`.\n\n{COLUMNS}"
    PAGE.write_text(f"{before}{BEGIN}\n{head}{''.join(rows)}{END}{after}", encoding="utf-8")
    print("".join(rows))
    return 0 if all(row.rstrip().endswith("proven |") for row in rows) else 1


def outcomes(files: Sequence[str]) -> Mapping[tuple[str, str], str]:
    """passed, failed or skipped, by file and test."""
    with tempfile.TemporaryDirectory(prefix="keelman-proofs-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *files]
        subprocess.run(command, cwd=ROOT, check=False, timeout=SECONDS)
        actual_outcomes: dict[tuple[str, str], str] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {item.tag for item in case}
            outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            actual_outcomes[f"{str(case.get('classname')).replace('.', '/')}.py", str(case.get("name"))] = outcome
        return actual_outcomes


def row(proof: Proof, results: Mapping[tuple[str, str], str]) -> str:
    """A line of the table."""
    mine = [outcome for (file, test), outcome in results.items() if file == proof.file and test.startswith(proof.tests)]
    bad = sum(item == "failed" for item in mine)
    result = "**not run**" if not mine or "skipped" in mine else f"**{bad} of {len(mine)} failed**" if bad else "proven"
    return f"{beginning(proof)}{result} |\n"


def kept(proof: Proof, table: str) -> str:
    """The existing line of the table, for a test that is not run again."""
    lines = (line for line in table.splitlines(keepends=True) if line.startswith(beginning(proof)))
    return next(lines, f"{beginning(proof)}**not run** |\n")


def beginning(proof: Proof) -> str:
    """A line of the table without its end."""
    names = ", ".join(f"`{item}`" for item in proof.classes)
    return f"| {names} | {proof.version} | {proof.what} | "


if __name__ == "__main__":
    sys.exit(main("".join(sys.argv[1:])))
