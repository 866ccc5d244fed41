"""Group metadata and assignments byte for byte, against the vectors of Connect's own layout."""

import pytest

from keelman.kafka.groups import connect_protocol as protocol
from keelman.kafka.groups.connect_protocol import (
    Metadata,
    OwnFields,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)
from keelman.model.errors import InvalidArgument
from keelman.model.work import MemberAssignment, Work

METADATA = "0002000f687474703a2f2f77313a383038332f0000000000000007ffffffff"
ASSIGNMENT = (
    "00020000000d636f6e6e6563742d312d616263000f687474703a2f2f77313a383038332f0000000000000007"
    "0000000100016300000002ffffffff000000000000000000000000"
)
TOLD = MemberAssignment("connect-1-abc", "http://w1:8083/", 7, (Work("c"), Work("c", 0)))


def test_metadata_without_our_fields_is_connects_own() -> None:
    plain = Metadata("http://w1:8083/", 7, None, None)
    assert encode_metadata(plain).hex() == METADATA
    assert decode_metadata(bytes.fromhex(METADATA)) == plain


def test_an_assignment_is_connects_own() -> None:
    assert encode_assignment(TOLD).hex() == ASSIGNMENT
    assert decode_assignment(bytes.fromhex(ASSIGNMENT)) == TOLD


def test_our_fields_come_after_connects_and_are_read_back() -> None:
    metadata = Metadata("http://w1:8083/", 7, TOLD, OwnFields({"zone": "a"}, 3, True, {Work("c", 0): 8}))
    raw = encode_metadata(metadata)
    assert decode_metadata(raw) == metadata
    ours = encode_metadata(Metadata("http://w1:8083/", 7, None, OwnFields()))
    assert ours.hex().startswith(METADATA)


def test_why_a_member_takes_no_tasks_comes_last_and_only_where_there_is_a_reason() -> None:
    fit, unfit = OwnFields({"zone": "a"}), OwnFields({"zone": "a"}, unfit="no Spark service answers")
    raw = encode_metadata(Metadata("u", 7, None, unfit))
    assert decode_metadata(raw).own == unfit
    assert raw.startswith(encode_metadata(Metadata("u", 7, None, fit))), "earlier versions read it as they always have"
    long = decode_metadata(encode_metadata(Metadata("u", 7, None, OwnFields(unfit="ü" * 5000)))).own
    assert long is not None
    assert 0 < len(long.unfit.encode()) <= protocol.MAX_UNFIT_BYTES + 3


def test_revocations_and_delay_are_read_back() -> None:
    assignment = MemberAssignment("m", "u", 1, (), (Work("a", 2), Work("b")), 3000, 1)
    assert decode_assignment(encode_assignment(assignment)) == assignment


def test_later_versions_and_trailing_bytes_are_read_as_the_known_version() -> None:
    later = bytes.fromhex("0009" + ASSIGNMENT[4:]) + b"more"
    assert decode_assignment(later) == TOLD


def test_version_0_has_no_revocations() -> None:
    plain = bytes.fromhex("0000" + ASSIGNMENT[4:-16])
    assert decode_assignment(plain) == TOLD


def test_version_0_metadata_has_no_allocation() -> None:
    assert decode_metadata(bytes.fromhex("0000" + METADATA[4:-8])) == Metadata("http://w1:8083/", 7, None, None)


@pytest.mark.parametrize("cut", [1, 5, 20, 40])
def test_what_is_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(InvalidArgument, match="not of this layout"):
        decode_assignment(bytes.fromhex(ASSIGNMENT)[:cut])


def test_ten_thousand_connectors_take_little_of_a_brokers_record() -> None:
    """A broker keeps all metadata and assignments of a group in one record, of 1,048,588 bytes unless set."""
    works = tuple(Work(f"inventory-warehouse-{n:05}", task) for n in range(10_000) for task in (-1, 0))
    assignment = MemberAssignment("connect-127.0.0.1:8083-5c9d9a4e", "http://127.0.0.1:8083/", 7, works)
    raw = encode_assignment(assignment)
    assert decode_assignment(raw) == assignment
    assert len(raw) < 100_000
    weights = {work: 4 for work in works if work.is_task}
    metadata = Metadata("http://127.0.0.1:8083/", 7, assignment, OwnFields(weights=weights))
    raw = encode_metadata(metadata)
    assert decode_metadata(raw) == metadata
    assert len(raw) < 200_000


def test_what_cannot_be_unpacked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = encode_assignment(MemberAssignment("m", "u", 1, tuple(Work(f"c{n}") for n in range(500))))
    for wrong in (raw[:-4], raw[:-40] + bytes(40)):
        with pytest.raises(InvalidArgument, match=r"cannot be unpacked|not of this layout"):
            decode_assignment(wrong)
    monkeypatch.setattr(protocol, "MAX_BYTES", 1000)
    with pytest.raises(InvalidArgument, match="to at most 1000"):
        decode_assignment(raw)
