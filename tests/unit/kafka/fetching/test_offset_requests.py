"""The bytes of OffsetForLeaderEpoch 4 and ListOffsets 6, as Kafka's message descriptions define them."""

import struct
from io import BytesIO

from keelman.kafka.error_codes import CODES
from keelman.kafka.fetching.offset_requests import (
    AskedEpoch,
    AskEpochEnds,
    AskOffsets,
    EpochEnd,
    EpochEnds,
    FoundOffset,
    Offsets,
)


def test_ends_of_epochs() -> None:
    ask_epoch_ends = AskEpochEnds({("t", 0): AskedEpoch(3, 5), ("u", 2): AskedEpoch(1, -1), ("t", 1): AskedEpoch(4, 4)})
    assert ask_epoch_ends.encode() == b"".join(
        [
            struct.pack(">i", -1) + b"\3",
            b"\2t\3" + struct.pack(">iii", 0, 5, 3) + b"\0" + struct.pack(">iii", 1, 4, 4) + b"\0\0",
            b"\2u\2" + struct.pack(">iii", 2, -1, 1) + b"\0\0\0",
        ]
    )
    answer = b"".join(
        [
            struct.pack(">i", 0) + b"\2\2t\3",
            struct.pack(">hiiq", 0, 0, 2, 1 << 40) + b"\0",
            struct.pack(">hiiq", 74, 1, -1, -1) + b"\0",
            b"\0\0",
        ]
    )
    ends = EpochEnds.decode(BytesIO(answer))
    assert ends.parts == {("t", 0): EpochEnd(2, 1 << 40), ("t", 1): EpochEnd(-1, -1, CODES["FENCED_LEADER_EPOCH"])}


def test_offsets_are_asked_of_who_leads_in_an_epoch() -> None:
    ask_offsets = AskOffsets(1, {("t", 3): (-2, 5)})
    assert ask_offsets.encode() == struct.pack(">ib", -1, 1) + b"\2\2t\2" + struct.pack(">iiq", 3, 5, -2) + b"\0\0\0"
    answer = struct.pack(">i", 0) + b"\2\2t\2" + struct.pack(">ihqqi", 3, 0, -1, 77, 5) + b"\0\0\0"
    assert Offsets.decode(BytesIO(answer)).parts == {("t", 3): FoundOffset(77)}
