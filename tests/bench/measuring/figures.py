"""Figures: the measurements, the comparison, and the table and file that show them."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One row. `ratio` is ours over the peer's: where both were measured in rounds, the median of the ratios of each
    round, of which `ratios` has the least and the most. `goal` and `limit` are texts such as ">= 1.3" and "<= 500"."""

    name: str
    unit: str
    ours: float | None
    peer: float | None
    peer_variant: str
    limit: str
    ratio: float | None
    goal: str
    rounds: int
    spread: str
    ratios: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal, else the limit, is met; None for a row without either."""
        text, value = (self.goal, self.ratio) if self.goal else (self.limit, self.ours)
        if not text or value is None:
            return None
        relation, _, bound = text.partition(" ")
        return value >= float(bound) if relation == ">=" else value <= float(bound)


def compared(  # noqa: PLR0917
    name: str,
    unit: str,
    ours: Sequence[float],
    peers: Mapping[str, Sequence[float]],
    goal: str,
    also: Mapping[str, tuple[str, str]] | None = None,
) -> list[Figure]:
    """One row for each variant of the peer; the goal belongs to the best variant.

    More is better if the goal begins with ">=". `also` gives single variants a row of their own: variant to name and
    goal.
    """
    better = max if goal.startswith(">=") else min
    mine = statistics.median(ours)
    medians = {variant: statistics.median(values) for variant, values in peers.items() if values}
    best = better(medians, key=lambda variant: medians[variant]) if medians else ""
    rows: list[Figure] = []
    for variant, median in sorted(medians.items(), key=lambda item: item[0] != best):
        spread = f"{spread_of(ours)} | {spread_of(peers[variant])}"
        rounds = min(len(ours), len(peers[variant]))
        ratio, ratios = ratio_of(ours, peers[variant])
        named = [(name, goal if variant == best else "")]
        if also and variant in also:
            named.append(also[variant])
        rows += [
            Figure(own, unit, mine, median, variant, "", ratio, expected, rounds, spread, ratios)
            for own, expected in named
        ]
    return rows


def ratio_of(ours: Sequence[float], peers: Sequence[float]) -> tuple[float, str]:
    """Ours over theirs, and its least and most.

    By pairs of one round each if both have all rounds, else of the medians. A slow phase of the machine slows both of a
    pair.
    """
    if len(ours) != len(peers):
        return statistics.median(ours) / statistics.median(peers), ""
    ratios = [mine / theirs for mine, theirs in zip(ours, peers, strict=True)]
    return statistics.median(ratios), spread_of(ratios) if len(ratios) > 1 else ""


def alone(name: str, unit: str, values: Sequence[float], value: float, limit: str) -> Figure:
    """A row without a peer: one figure of the values, and its limit."""
    return Figure(name, unit, value, None, "", limit, None, "", len(values), spread_of(values))


def beside(name: str, unit: str, ours: float, peer: float, limit: str) -> Figure:
    """A row of one figure that has a limit of its own, beside the peer's figure."""
    return Figure(name, unit, ours, peer, "as shipped", limit, ours / peer, "", 1, "")


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * len(ordered) * 1000) // 1000) - 1))]


def spread_of(values: Sequence[float]) -> str:
    """Least and most."""
    return f"{number(min(values))}..{number(max(values))}" if values else ""


def number(value: float | None) -> str:
    """Three or four significant digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(figures: Sequence[Figure], console: Console) -> None:
    """Prints the table."""
    table = Table(title="keelman beside Apache Kafka Connect")
    heads = (
        "name",
        "unit",
        "ours",
        "peer",
        "variant of the peer",
        "ratio",
        "of pairs",
        "goal",
        "met",
        "rounds",
        "spread",
    )
    for head in heads:
        table.add_column(head, justify="right" if head in ("ours", "peer", "ratio") else "left")
    for figure in figures:
        met = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}[figure.met]
        ratio = "-" if figure.ratio is None else f"{figure.ratio:.2f}"
        cells = (figure.name, figure.unit, number(figure.ours), number(figure.peer), figure.peer_variant, ratio)
        table.add_row(*cells, figure.ratios, figure.goal or figure.limit, met, str(figure.rounds), figure.spread)
    console.print(table)


def save(row: str, figures: Sequence[Figure], failure: str, file: Path, measured: Mapping[str, object]) -> None:
    """Writes one measured row to the file; rows of other names stay unchanged.

    `measured` holds the time and the machine. A row that failed keeps the figures of an earlier run, with the time of
    their measurement, and is listed among `failures` until it is measured again. The file is replaced as a whole.
    """
    told = json.loads(file.read_text()) if file.exists() else {}
    names = {figure.name for figure in figures}
    remaining = [entry for entry in told.get("figures", []) if entry["name"] not in names]
    failures = [entry for entry in told.get("failures", []) if entry["row"] != row]
    if failure:
        failures.append({"row": row, "reason": failure, "measured": dict(measured)})
    rows = remaining + [{**asdict(figure), "measured": dict(measured)} for figure in figures]
    file.parent.mkdir(parents=True, exist_ok=True)
    path = file.with_suffix(".new")
    path.write_text(json.dumps({"figures": rows, "failures": failures}, indent=1) + "\n")
    os.replace(path, file)
