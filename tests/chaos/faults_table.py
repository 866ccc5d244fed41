"""The page of results, from the rows of build/faults.json."""

from __future__ import annotations

import datetime
import os
import statistics
from collections.abc import Sequence
from typing import Any

HEAD = """# Accidents and what became of the records

`make faults [SEEDS=3] [ONLY=pattern]` copies 100,000 numbered records on each path of a real system (broker, Spark
service, two workers) and lets one accident happen at a time, at moments that the seed chooses. Then everything must
arrive and is stopped cleanly, and the oracle (`keelman.testing.oracle`) compares what was sent with what committed
readers see, and the offsets with the data. Aborted transactions of a stranger are mixed into the topics that the mirror
and the sinks read.

*Foreign*: records that nobody sent, or that were aborted. *Stuck*: partitions where committed readers stood still
behind the end for more than 60 s. *Offsets*: those that differ from the last visible record. *Recovered*: seconds from
the accident until a record is visible that was fed at least a second after it; a freeze includes the time frozen. One
accident may strike several times in a run (each slot, each worker); the longest counts.

Run on {date} with {cpus} processors, shared with other work, so the seconds are upper bounds.
Runs: {runs}. Not clean: {bad}. What is not in the table was not run that day; *records* are those of all runs of a row.

"""
COLUMNS = (
    "path",
    "accident",
    "runs",
    "records",
    "lost",
    "duplicated",
    "torn",
    "out of order",
    "foreign",
    "stuck",
    "offsets",
)
TIMES = ("recovered, median", "max")
COUNTS = ("lost", "duplicated", "torn", "out_of_order", "foreign", "stuck", "offsets")


def page(rows: Sequence[dict[str, Any]], date: datetime.date, broken: Sequence[str] = ()) -> str:
    """The whole page; `broken` are scenarios that were not run to their end, and why."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["path"], row["accident"]), []).append(row)
    bad = sum(not row["clean"] for row in rows)
    text = HEAD.format(date=date.isoformat(), cpus=os.cpu_count(), runs=len(rows), bad=bad)
    columns = (*COLUMNS, *TIMES)
    text += f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|\n"
    for (path, accident), group in sorted(groups.items(), key=lambda item: item[0][0]):
        counts = [str(sum(row[name] for row in group)) for name in COUNTS]
        took = [row["seconds_to_recover"] for row in group if row["seconds_to_recover"] is not None]
        times = [f"{statistics.median(took):.1f}", f"{max(took):.1f}"] if took else ["", ""]
        records = f"{sum(row['records'] for row in group):,}"
        text += f"| {' | '.join([path, accident, str(len(group)), records, *counts, *times])} |\n"
    troubles = [f"- not run to its end: {line}" for line in broken]
    troubles += [f"- {r['path']}, {r['accident']}, seed {r['seed']}: {r['told']}" for r in rows if not r["clean"]]
    return text + ("\n## Not clean\n\n" + "\n".join(troubles) + "\n" if troubles else "")
