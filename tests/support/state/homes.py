"""Kept databases of the version with a table for each noun, recorded by the state service of commit 555404c8."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from support.places import ROOT

HOMES = ROOT / "tests" / "recorded" / "homes"
FORMER = "0024"


def kept_home(url: str, key_file: Path) -> dict[str, Any]:
    """Loads the kept database for an empty one, and writes its key file. Returns its content: the last revision, the
    number of rows of other tables, and all resources as name, revision and payload, with secrets in the clear."""
    kind = "postgresql" if "://" in url else "sqlite"
    dump = HOMES / f"{kind}.sql"
    if kind == "postgresql":
        words = ["psql", "-q", "-v", "ON_ERROR_STOP=1", f"--dbname={url}", f"--file={dump}"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=300)
    else:
        with closing(sqlite3.connect(url)) as database:
            database.executescript(dump.read_text())
    key_file.write_bytes((HOMES / f"{kind}.key").read_bytes())
    key_file.chmod(0o600)
    content: dict[str, Any] = json.loads((HOMES / f"{kind}.json").read_text())
    return content


def set_back(file: Path) -> None:
    """Puts the content of an SQLite file into the tables of the version before."""
    new = file.with_suffix(".new")
    file.rename(new)
    with closing(sqlite3.connect(file, isolation_level=None)) as old:
        old.executescript((HOMES / "sqlite.sql").read_text())
        old.execute("PRAGMA foreign_keys=OFF")
        old.execute("ATTACH ? AS new", [str(new)])
        present = {table for (table,) in old.execute("SELECT name FROM new.sqlite_master WHERE type = 'table'")}
        for (table,) in old.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
            if table == "alembic_version":
                continue
            old.execute(f"DELETE FROM main.{table}")
            columns = [row[1] for row in old.execute(f"PRAGMA main.table_info({table})")]
            if table in present:
                old.execute(f"INSERT INTO main.{table} SELECT {', '.join(columns)} FROM new.{table}")
                if table == "counter":
                    old.execute("DELETE FROM main.counter WHERE name LIKE 'audit%'")
                continue
            places = ", ".join("?" for _ in columns)
            for name, revision, payload in old.execute(
                "SELECT name, revision, payload FROM new.resource WHERE noun = ?", [table]
            ).fetchall():
                values = {"name": name, "revision": revision} | json.loads(payload)
                if table == "worker_cluster":
                    values["broker_cluster"] = values["spec"]["broker_cluster"]
                old.execute(
                    f"INSERT INTO main.{table} VALUES ({places})", [_plain(values[column]) for column in columns]
                )
    new.unlink()


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
