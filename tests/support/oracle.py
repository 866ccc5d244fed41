"""Judges the fate of numbered records by the records that were sent and seen. Pure; no I/O, no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from support.numbered import Number, parsed

OFFENDERS_SHOWN = 5
STUCK_SECONDS = 60.0
VERDICTS = ("lost", "duplicated", "out_of_order", "torn", "foreign", "stuck", "offsets")


class Sample(NamedTuple):
    """A partition at a moment: the last offset that committed readers can see, and the end of its log."""

    seconds: float
    partition: str
    last_stable: int
    end: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The number of records with one fault, and the first few of them."""

    count: int = 0
    first: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts by name; `sent` and `seen` count records."""

    sent: int
    seen: int
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """True if there are no faults."""
        return not any(v.count for v in self.verdicts.values())

    def __getitem__(self, verdict: str) -> int:
        """The number of records with this fault."""
        return self.verdicts[verdict].count

    def __str__(self) -> str:
        parts = [f"{self.sent} sent, {self.seen} seen"]
        for name, verdict in self.verdicts.items():
            if verdict.count:
                more = ", …" if verdict.count > len(verdict.first) else ""
                parts.append(f"{name} {verdict.count}: {', '.join(verdict.first)}{more}")
        return "; ".join(parts) if len(parts) > 1 else parts[0] + "; clean"


def judge(
    sent: Mapping[int, int],
    seen: Mapping[str, Sequence[bytes | None]],
    *,
    samples: Iterable[Sample] = (),
    offsets: Mapping[str, tuple[Any, Any]] | None = None,
    gone: Collection[Number] = (),
) -> Report:
    """Judges one history.

    `sent`: how many records each task sent, numbered from 0. `seen`: the records of each place that keeps an order (a
    partition, a file), in its order. `samples`: partitions over time, in order; a transaction is stuck when the end
    that committed readers see stays at one place before the log's end for more than 60 s. `offsets`: by name, the
    reported and the expected offset after the last visible record. `gone`: records that the source itself has lost
    since; they may be seen, where they were copied before, but do not count as lost.
    """
    answer: dict[str, list[str]] = {name: [] for name in VERDICTS}
    met: dict[Number, str] = {}
    for place, records in seen.items():
        _walk(place, records, sent, met, answer)
    for task, count in sorted(sent.items()):
        answer["lost"] += [str(n) for s in range(count) if (n := Number(task, s)) not in met and n not in gone]
    answer["stuck"] += _stuck(samples)
    for name, (says, is_) in (offsets or {}).items():
        if says != is_:
            answer["offsets"].append(f"{name} says {says}, the data {is_}")
    verdicts = {name: Verdict(len(all_), tuple(all_[:OFFENDERS_SHOWN])) for name, all_ in answer.items()}
    return Report(sum(sent.values()), sum(map(len, seen.values())), verdicts)


def _walk(
    place: str,
    records: Sequence[bytes | None],
    sent: Mapping[int, int],
    met: dict[Number, str],
    answer: dict[str, list[str]],
) -> None:
    """Reads one place from its beginning.

    A repeated record is a duplicate at any position; only the first occurrence can be out of order: after a later
    record of its task.
    """
    highest: dict[int, int] = {}
    for index, record in enumerate(records):
        number = parsed(record)
        if number is None:
            answer["torn"].append(f"{place}[{index}] {(record or b'null')[:40]!r}")
        elif not 0 <= number.sequence < sent.get(number.task, 0):
            answer["foreign"].append(f"{number} in {place}[{index}]")
        elif number in met:
            answer["duplicated"].append(f"{number} in {place}[{index}]")
        else:
            met[number] = place
            if number.sequence < highest.get(number.task, -1):
                answer["out_of_order"].append(f"{number} in {place}[{index}] behind {highest[number.task]}")
            highest[number.task] = max(highest.get(number.task, -1), number.sequence)


def _stuck(samples: Iterable[Sample]) -> list[str]:
    since: dict[str, Sample] = {}
    offenders: dict[tuple[str, int], str] = {}
    for sample in samples:
        begun = since.get(sample.partition)
        if sample.last_stable >= sample.end:
            since.pop(sample.partition, None)
        elif begun is None or begun.last_stable != sample.last_stable:
            since[sample.partition] = sample
        elif (took := sample.seconds - begun.seconds) > STUCK_SECONDS:
            said = f"{sample.partition} at {sample.last_stable} of {sample.end} for {took:.0f} s"
            offenders[sample.partition, sample.last_stable] = said
    return list(offenders.values())
