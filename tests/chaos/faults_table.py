"""The page of results, from the rows of build/faults.json; results of other runs stay on it unchanged."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from typing import Any

from chaos.chaos_faults import FAULTS
from chaos.chaos_paths import PATHS

PathAndFault = tuple[str, str]
HEAD = """# Faults and their effects on records

`make faults [SEEDS=3] [ONLY=x,y] [RESUME=1]` copies 100,000 numbered records on each path of a real system (broker,
Spark service, two workers) and causes one fault at a time, at moments that the seed chooses; a bounce is twelve ends
and starts of three workers in turn. Rows of 20,000 records a run were made with `--records 20000`. Then all records
must arrive, and everything is stopped in order. The oracle (`support.oracle`) compares the records that were
sent with those that committed readers see, and the offsets with the data. Aborted transactions of another producer are
mixed into the topics that the mirror and the sinks read. Slots run in the Spark service's own JVM; for faults of
executors they run on a standalone cluster. Each poll of the Java source has up to 500 records, which share one offset;
its boundary is `poll`.

The faults on three brokers are on a cluster whose topics have three replicas, of which two must be in sync, and whose
groups drop their offsets after a minute. *Latency*: seconds from the creation of a record until it is visible, after
the fault and its effects are over: the median of two seconds with some 70 records a second, measured 20 times a second.

An unclean election removes from a topic the records that only the lost replica had, acknowledged or not. The promise
is then: the records that the source topic holds in the end are copied once, in their order, and the records that it has
lost are copied once or not at all, depending on whether they were copied before. There is no promise for a *target*
topic that loses records by an unclean election: committed records that are gone are not copied again. When a source
topic is deleted and created again, all records of the new topic are copied; records of the former topic that had not
been copied are lost with it. When a *target* topic is deleted and created again, its records are lost with it; all
records that were created after its deletion are in the new topic, once.

A connector that a fault makes FAILED is restarted by hand
(`POST /connectors/NAME/restart?includeTasks=true&onlyFailed=true`): after a transaction that is longer than the
brokers' `transaction.max.timeout.ms`, and after a missing right. Partitions that are added to a topic while it is read
take all records from then on. Batches are refused by a `max.message.bytes` of 2,000. The rights are removed one after
another, by ACLs: to write to the target, to read the source, to use the transactional id, to read the group, to write
to the offsets topic. Sessions of 4 s, rights and certificates are tested on a broker with SASL_SSL. The broker's
certificate is out of date for 8 s, before another replaces it. When its *CA* changes, all connections break too, and
the clients' trust store on disk is replaced: before that by a store with both CAs, so that nothing fails, or 4 s later
by a store with the new CA alone. A broker of 3.7 or 3.9 is started as a broker of 4.3; then the cluster's features are
raised, so that transactions of version 2 follow those of version 1. Three brokers are rolled from 3.7 to 3.9, and from
that to 4.3. A lone broker of 3.9 does not come back on data of 3.7, nor on its own data: its controller does not fence
a registration that has sent it no heartbeat yet, and accepts no other (`DUPLICATE_BROKER_REGISTRATION`) before the
session is over, which keelman makes endless for a broker that is alone.
*Epochs used up*: three transactions before the producer ids end. Clocks are set half an hour ahead and behind.

*Others* append a numbered line to the file, rename it, or copy and truncate it, four times, each before or after a
kill -9 of all slots. Their lines must stay and, from a source's file, be copied, once. No slot writes between a copy
and its truncation: lines of that time are lost to all readers. Rows that name two faults have both at once.

*Foreign*: records that were never sent, or that were aborted. *Stuck*: partitions in which committed readers stayed
before the end for more than 60 s. *Offsets*: those that differ from the last visible record. *Stood still*: seconds
after the fault in which no new record became visible though records waited, the longest such time of a run; for a
freeze this includes the time of the freeze. A fault may occur several times in a run (each slot, each worker).

Run with {cpus} processors, shared with other work, so the seconds are upper bounds; *records* are those of all runs of
a row. Runs: {runs}. Not clean: {bad}. Not run to their end: {broken}.

"""
COLUMNS = (
    "path",
    "fault",
    "runs",
    "records",
    "lost",
    "duplicated",
    "torn",
    "out of order",
    "foreign",
    "stuck",
    "offsets",
    "stood still, median",
    "max",
    "latency",
    "run on",
)
COUNTS = ("lost", "duplicated", "torn", "out_of_order", "foreign", "stuck", "offsets")


def page(rows: Sequence[dict[str, Any]], broken: Sequence[dict[str, Any]], former: str = "") -> str:
    """The whole page; `broken` are scenarios that did not run to their end, with the reasons.

    It keeps those lines of the `former` page that are not among the rows.
    """
    groups: dict[PathAndFault, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["path"], row["fault"]), []).append(row)
    stored_lines = _lines(former)
    lines, missing = [], {}
    for path in PATHS:
        for name, fault in FAULTS.items():
            if line := _line(path, name, groups.get((path, name), [])) or stored_lines.get((path, name), ""):
                lines.append(line)
            elif path in fault.paths:
                missing.setdefault(name, []).append(path)
    unended = [f"- not run to its end: {b['fault']}, seed {b['seed']}: {b['why']}" for b in broken]
    unclean = [f"- {r['path']}, {r['fault']}, seed {r['seed']}: {r['told']}" for r in rows if not r["clean"]]
    unclean += [f"- {line}" for line in _unclean(former) if tuple(line.split(", ")[:2]) not in groups]
    runs = sum(int(_cells(line)[2]) for line in lines)
    text = HEAD.format(cpus=os.cpu_count(), runs=runs, bad=len(unclean), broken=len(unended))
    text += f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n{''.join(lines)}"
    text += _list("Not clean", [*unended, *unclean])
    return text + _list("Not run", [f"- {name}: {', '.join(paths)}" for name, paths in missing.items()])


def _list(title: str, items: Sequence[str]) -> str:
    return f"\n## {title}\n\n" + "\n".join(items) + "\n" if items else ""


def _lines(former: str) -> dict[PathAndFault, str]:
    """The lines of its table, by path and fault."""
    lines = {}
    for line in former.splitlines(keepends=True):
        if line.startswith("| ") and len(cells := _cells(line)) == len(COLUMNS):
            lines[cells[0], cells[1]] = line
    return lines


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _unclean(former: str) -> list[str]:
    """The unclean results in the former page's list, except for scenarios that did not run to their end."""
    items = former.partition("## Not clean\n")[2].partition("\n## ")[0].splitlines()
    return [item[2:] for item in items if item.startswith("- ") and not item.startswith("- not run")]


def _line(path: str, fault: str, group: Sequence[dict[str, Any]]) -> str:
    """A line of the table; empty if there are no rows."""
    if not group:
        return ""
    counts = [str(sum(row[name] for row in group)) for name in COUNTS]
    stood = [row["standstill_seconds"] for row in group]
    times = [f"{statistics.median(stood):.1f}", f"{max(stood):.1f}"]
    after = [took for row in group if (took := row.get("latency_seconds")) is not None]
    times.append(f"{statistics.median(after):.2f}" if after else "")
    records = f"{sum(row['records'] for row in group):,}"
    dates = sorted({row["date"] for row in group})
    cells = [path, fault, str(len(group)), records, *counts, *times, " to ".join(dates[:: max(1, len(dates) - 1)])]
    return f"| {' | '.join(cells)} |\n"
