"""The bytes of a producer's requests and answers, as Kafka's message descriptions define them."""

import struct
from io import BytesIO

import pytest
from aiokafka.errors import IncompatibleBrokerVersion

from keelman.kafka.batches.features import AskFeatures, FeaturesAnswer
from keelman.kafka.batches.producer_requests import (
    AddPartitions,
    AddPartitionsAnswer,
    EndedPlainly,
    EndedWithEpoch,
    EndTxn,
    EndTxnWithEpoch,
    InitProducerId,
    InitProducerIdAnswer,
    Produce,
    ProduceAdding,
    ProduceAnswer,
    Produced,
    ProducerId,
)
from keelman.kafka.wire.fields import compact, varint


def test_produce() -> None:
    request = Produce(
        "tx", -1, 30_000, {"t": [(0, bytearray(b"one")), (2, bytearray(b"x" * 200))], "u": [(1, bytearray())]}
    )
    assert request.encode() == b"".join(
        [
            b"\x03tx" + struct.pack(">hi", -1, 30_000) + b"\x03",
            b"\x02t\x03"
            + struct.pack(">i", 0)
            + b"\x04one\0"
            + struct.pack(">i", 2)
            + b"\xc9\x01"
            + b"x" * 200
            + b"\0\0",
            b"\x02u\x02" + struct.pack(">i", 1) + b"\x01\0\0",
            b"\0",
        ]
    )
    header = request.build_request_header(correlation_id=9, client_id="me").encode()
    assert header == struct.pack(">hhih", 0, 9, 9, 2) + b"me\0"
    assert ProduceAdding("tx", -1, 1, {}).build_request_header(9, "me").encode()[:4] == struct.pack(">hh", 0, 12)


def test_the_answer_to_produce_with_record_errors_and_tags() -> None:
    good = struct.pack(">ihqqq", 0, 0, 40, -1, 0) + b"\x01\0\0"
    bad = struct.pack(">ihqqq", 3, 87, -1, -1, -1) + b"\x02" + struct.pack(">i", 5) + compact("why") + b"\0"
    bad += compact("refused") + b"\x01\x00\x02ab"  # one tagged field, as with a new leader
    data = b"\x02" + compact("t") + b"\x03" + good + bad + b"\0" + struct.pack(">i", 700) + b"\0"
    answer = ProduceAnswer.decode(BytesIO(data))
    assert answer.throttle_ms == 700
    assert answer.parts == [
        Produced("t", 0, 0, 40, ""),
        Produced("t", 3, 87, -1, "why (record 6 of its batch)"),
    ]


def test_requests_to_the_coordinator() -> None:
    assert InitProducerId(None, 5).encode() == b"\0" + struct.pack(">iqh", 5, -1, -1) + b"\0"
    added = AddPartitions("tx", 7, 3, {"t": [0, 1]}).encode()
    assert added == b"\x03tx" + struct.pack(">qh", 7, 3) + b"\x02\x02t\x03" + struct.pack(">ii", 0, 1) + b"\0\0"
    for kind, version in ((EndTxn, 3), (EndTxnWithEpoch, 5)):
        request = kind("tx", 7, 3, commit=True)
        assert request.encode() == b"\x03tx" + struct.pack(">qh", 7, 3) + b"\x01\0"
        assert version == request.prepare({26: (0, 5)}).API_VERSION


def test_answers_of_the_coordinator() -> None:
    response = struct.pack(">ihqh", 0, 51, 7, 4) + b"\0"
    assert InitProducerIdAnswer.decode(BytesIO(response)) == ProducerId(51, 7, 4)
    assert EndedWithEpoch.decode(BytesIO(response)) == ProducerId(51, 7, 4)
    assert EndedPlainly.decode(BytesIO(response[:6] + b"\0")) == ProducerId(51, -1, -1)
    parts = b"".join(struct.pack(">ih", index, code) + b"\0" for index, code in enumerate([0, 55, 29]))
    answer = AddPartitionsAnswer.decode(
        BytesIO(struct.pack(">i", 0) + b"\x02" + compact("t") + b"\x04" + parts + b"\0\0")
    )
    assert answer.parts == [("t", 0, 0), ("t", 1, 55), ("t", 2, 29)]
    assert answer.refused == "t-2"
    assert answer.error_code == 29  # not the error that the others were not attempted
    assert AddPartitionsAnswer([("t", 0, 0)]).error_code == 0


def test_the_features_of_a_cluster() -> None:
    apis = b"\x03" + struct.pack(">hhh", 0, 0, 12) + b"\0" + struct.pack(">hhh", 26, 0, 5) + b"\0"
    features = b"\x03" + compact("transaction.version") + struct.pack(">hh", 2, 0) + b"\0"
    features += compact("group.version") + struct.pack(">hh", 1, 0) + b"\0"
    tags = b"\x02" + b"\x01\x08" + struct.pack(">q", 12) + b"\x02" + varint(len(features)) + features
    answer = FeaturesAnswer.decode(BytesIO(struct.pack(">h", 0) + apis + struct.pack(">i", 0) + tags))
    assert answer == FeaturesAnswer(0, {"transaction.version": 2, "group.version": 1})
    assert FeaturesAnswer.decode(BytesIO(struct.pack(">h", 35) + b"\x01" + struct.pack(">i", 0) + b"\0")) == (35, {})
    assert AskFeatures().parse_response_header(BytesIO(struct.pack(">i", 6) + b"rest")).correlation_id == 6


def test_a_version_that_the_broker_does_not_know_is_not_sent() -> None:
    with pytest.raises(IncompatibleBrokerVersion, match="ProduceAdding 3 to 11, not 12"):
        ProduceAdding(None, -1, 1, {}).prepare({0: (3, 11)})
    with pytest.raises(IncompatibleBrokerVersion):
        EndTxn("tx", 7, 3, commit=True).prepare({})
