"""The order in which one partition's batches are sent, and their sequence numbers."""

from keelman.kafka.batches.produce_failure import CONCURRENT, NETWORK
from keelman.kafka.batches.queue import SEQUENCES, PartitionQueue, ProducerIdentity, QueuedBatch
from keelman.kafka.batches.record_batch import encode, read_header

WHO = ProducerIdentity(7, 3)


def queue_of(*records: int) -> tuple[PartitionQueue, list[QueuedBatch]]:
    queue = PartitionQueue("topic", 0)
    batches = [
        QueuedBatch(encode([b"x"] * count, now_ms=0), count, number, queued_at=0.0, on_stored=None)
        for number, count in enumerate(records)
    ]
    queue.waiting.extend(batches)
    return queue, batches


def take(queue: PartitionQueue, identity: ProducerIdentity = WHO) -> QueuedBatch:
    return queue.take(identity, transactional=True)


def proven(queue: PartitionQueue) -> None:
    queue.delivered(take(queue))


def test_sequences_count_records_and_begin_anew_with_each_epoch() -> None:
    queue, _ = queue_of(3, 5, 2, 2)
    headers = [read_header(take(queue).data) for _ in range(3)]
    assert [header.base_sequence for header in headers] == [0, 3, 8]
    assert {(header.producer_id, header.producer_epoch, header.transactional) for header in headers} == {(7, 3, True)}
    header = read_header(take(queue, ProducerIdentity(7, 4)).data)
    assert (header.base_sequence, header.producer_epoch) == (0, 4)


def test_a_batch_that_is_too_large_goes_in_halves_under_its_own_sequences() -> None:
    delivered: list[int] = []
    queue, (_, large, _) = queue_of(2, 5, 3)
    large.on_stored = delivered.append
    proven(queue)
    take(queue)
    behind = take(queue)
    queue.again(large)
    queue.split(large, transactional=True)
    queue.again(behind)
    queue.split(queue.waiting[0], transactional=True)  # and one half is split again
    headers = []
    while queue.waiting:
        batch = take(queue)
        headers.append(read_header(batch.data))
        queue.delivered(batch)
        if batch.on_stored is not None:
            batch.on_stored(98 + headers[-1].base_sequence)
    assert [(h.base_sequence, h.records) for h in headers] == [(2, 1), (3, 1), (4, 3), (7, 3)]
    assert {(h.producer_id, h.producer_epoch, h.transactional) for h in headers} == {(7, 3, True)}
    assert delivered == [100], "the caller's records count from the first, wherever the halves behind them are"


def test_sequences_begin_anew_behind_the_highest() -> None:
    queue, _ = queue_of(1, 3, 4, 1)
    proven(queue)
    queue._sequence = SEQUENCES - 2
    assert [take(queue).sequence for _ in range(3)] == [SEQUENCES - 2, 1, 5]


def test_without_an_identity_there_are_no_sequences_and_one_is_in_flight() -> None:
    queue, _ = queue_of(1, 1)
    first = take(queue, ProducerIdentity())
    assert (first.sequence, read_header(first.data).producer_id) == (-1, -1)
    assert not queue.may_send(0.0, ProducerIdentity())
    queue.delivered(first)
    assert queue.may_send(0.0, ProducerIdentity())


def test_the_first_batch_of_a_producer_goes_alone() -> None:
    queue, _ = queue_of(1, 1, 1)
    first = take(queue)
    assert not queue.may_send(0.0, WHO)
    queue.delivered(first)
    take(queue)
    assert queue.may_send(0.0, WHO)
    assert queue.may_send(0.0, ProducerIdentity(7, 4))  # the brokers know the producer id
    assert not queue.may_send(0.0, ProducerIdentity(8, 0))


def test_what_is_sent_again_keeps_its_place_its_sequence_and_goes_alone() -> None:
    queue, batches = queue_of(1, 1, 1, 1)
    proven(queue)
    first, second = take(queue), take(queue)
    queue.again(second)
    assert queue.follows_another(second)
    assert not queue.may_send(0.0, WHO)  # the first is not yet answered
    queue.again(first)
    assert not queue.follows_another(first)
    assert list(queue.waiting) == batches[1:]
    assert take(queue) is first
    assert first.sequence == 1
    assert not queue.may_send(0.0, WHO)  # the second is sent again too, but after the first
    queue.delivered(first)
    assert take(queue) is second
    assert second.sequence == 2
    assert queue.may_send(0.0, WHO)  # new batches may be sent beside it


def test_a_held_queue_waits_longer_each_time_until_something_is_delivered() -> None:
    queue, _ = queue_of(1, 1)
    waits = []
    for _ in range(8):
        queue.hold(10.0, NETWORK, "gone")
        waits.append(queue.retry_at - 10.0)
    assert waits == sorted(waits)
    assert abs(waits[0] - 0.005) < 1e-9
    assert abs(waits[-1] - 0.2) < 1e-9
    assert not queue.may_send(10.1, WHO)
    assert queue.may_send(10.3, WHO)
    assert (queue.problem, queue.problem_text) == (NETWORK, "gone")
    proven(queue)
    assert (queue.problem, queue.problem_text) == (0, "")
    queue.hold(20.0, CONCURRENT, "")
    assert abs(queue.retry_at - 20.001) < 1e-9


def test_after_a_pause_the_first_batch_goes_alone() -> None:
    queue, _ = queue_of(1, 1, 1, 1)
    assert queue.may_send(10.0, WHO)
    proven(queue)
    assert queue.may_send(10.5, WHO)
    take(queue)
    assert queue.may_send(10.5, WHO)
    queue.delivered(queue.in_flight[0])
    assert queue.may_send(11.6, WHO)
    take(queue)
    assert not queue.may_send(11.6, WHO)
