"""Decodes one partition's answer to a Fetch: its data batches, without markers and aborted records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keelman.kafka.batches.record_batch import BatchHeader, decode, record_batches, verify

_ABORT = b"\x00\x00"


@dataclass(slots=True)
class Fetched:
    """Whole data batches of a partition, in order; the first may begin before `position`, where the fetch began.

    `next` is the first offset of the next fetch, also after markers and aborted records. `end` is the high watermark,
    with read_committed the last stable offset; when `next` has reached it, all is read. `size` is in bytes.
    `topic_id` is empty where the brokers know none.
    """

    topic: str
    partition: int
    batches: list[tuple[BatchHeader, memoryview]]
    position: int
    next: int
    end: int
    size: int = 0
    topic_id: str = ""


def whole_batches(
    data: bytes | memoryview,
    position: int,
    aborted: Iterable[tuple[int, int]],
    *,
    read_committed: bool,
    check_crcs: bool,
    epochs: list[tuple[int, int]] | None = None,
) -> tuple[list[tuple[BatchHeader, memoryview]], int]:
    """Returns the data batches of a fetched record set, and the position after its last whole batch.

    `aborted` are the answer's aborted transactions, each the producer's id and the offset where it began: that
    producer's records from there to its abort marker are left out. Each leader epoch is appended to `epochs`, with its
    first offset. Without `check_crcs` only batches that are left out are checked. Raises CorruptBatch.
    """
    batches: list[tuple[BatchHeader, memoryview]] = []
    begins = sorted(aborted, key=lambda range_: range_[1], reverse=True) if read_committed else []
    open_aborted: set[int] = set()
    for header, batch in record_batches(data):
        if header.magic < 2:
            # A compressed set of old messages has the offset of its last message.
            # https://kafka.apache.org/documentation/#messageset
            if header.base_offset >= position:
                batches.append((header, batch))
                position = header.base_offset + 1
            continue
        if check_crcs:
            verify(header, batch)
        if epochs is not None and (not epochs or epochs[-1][0] != header.leader_epoch):
            epochs.append((header.leader_epoch, max(position, header.base_offset)))
        while begins and begins[-1][1] <= header.last_offset:
            open_aborted.add(begins.pop()[0])
        passed_over = (
            header.control or header.records <= 0 or header.last_offset < position or _gone(header, open_aborted)
        )
        if passed_over and not check_crcs:
            verify(header, batch)  # a header that may be damaged must not leave records out
        if header.control:
            if open_aborted and _aborts(header, batch):
                open_aborted.discard(header.producer_id)
        elif not passed_over:
            batches.append((header, batch))
        position = max(position, header.last_offset + 1)
    return batches, position


def _gone(header: BatchHeader, open_aborted: set[int]) -> bool:
    return header.transactional and header.producer_id in open_aborted


def _aborts(header: BatchHeader, batch: memoryview) -> bool:
    """Whether a control batch is an abort marker: the key of its record is version and type, int16 each."""
    return header.records > 0 and (decode(header, batch).keys[0] or b"")[2:4] == _ABORT
