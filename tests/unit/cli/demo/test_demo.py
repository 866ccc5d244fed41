"""The main job's decisions: legal inputs, which attempt continues, equality of files, progress."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from keelman.api.copy.v1.copy_run_pb2 import CopyProgress, CopyRun, CopyRunState
from keelman.cli.demo import compare, text
from keelman.cli.demo.attempt import CopyAttempt, Decision, Pair, checked_output, decide
from keelman.cli.demo.compare import ByteDifference, is_beginning, verdict
from keelman.cli.demo.job import data_set
from keelman.cli.demo.phases import Phases
from keelman.cli.demo.text import check_text
from keelman.cli.demo.watching import Leg, RateMeter, line_of, newest_run, source_position
from keelman.model.errors import InvalidArgument
from keelman.runtime.home import Home


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\r\nc\n", "line 2, byte 3: a carriage return"),
        (b"\r", "line 1, byte 0: a carriage return"),
        (b"a\nbc", "line 2, byte 4: no line feed at the end"),
        (b"a\n\xc3\x28\n", "line 2, byte 2: not UTF-8"),
        (b"a\n\xff\n", "line 2, byte 2: not UTF-8"),
        (b"a\nb\xe2\x82", "line 2, byte 3: ends within a UTF-8 character"),
        (b"", "is empty"),
    ],
)
def test_what_lines_cannot_carry_is_named_with_its_place(
    content: bytes, message: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", chunk)
    file = tmp_path / "given"
    file.write_bytes(content)
    with pytest.raises(InvalidArgument) as raised:
        check_text(file)
    assert message in raised.value.message
    assert str(file) in raised.value.message
    assert "legal is" in raised.value.message


@pytest.mark.parametrize("chunk", [1, 5, 1 << 20])
def test_good_text_is_counted_and_summed(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", chunk)
    content = "\n\nä€𝄞 \x00\u2028\nlast\n".encode()
    file = tmp_path / "given"
    file.write_bytes(content)
    facts = check_text(file)
    assert (facts.size, facts.lines, facts.sha256) == (len(content), 4, hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("chunk", [7, 64, 100])
def test_a_line_too_long_for_a_record_is_refused(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(text, "LONGEST_LINE_BYTES", 100)
    file = tmp_path / "given"
    file.write_bytes(b"x\n" + b"y" * 100 + b"\nz\n")
    assert check_text(file).lines == 3
    file.write_bytes(b"x\n" + b"y" * 101 + b"\nz\n")
    with pytest.raises(InvalidArgument, match="line 2, byte 2: longer than 100 bytes"):
        check_text(file)


def test_pieces_are_shorter_than_the_longest_line() -> None:
    assert text.CHUNK_BYTES < text.LONGEST_LINE_BYTES < 1_048_576


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/null")):
        with pytest.raises(InvalidArgument, match=str(path)):
            check_text(path)


def test_the_default_data_set_can_be_carried() -> None:
    assert check_text(data_set()).lines > 3000


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    (tmp_path / "in").write_bytes(b"one\ntwo\nthree\n")
    return Pair(Home(tmp_path / "home"), tmp_path / "in", tmp_path / "out")


def decided(pair: Pair) -> Decision:
    return decide(pair, check_text(pair.input))


def test_a_first_run_begins_attempt_one(pair: Pair) -> None:
    decision = decided(pair)
    assert (decision.attempt.number, decision.fresh) == (1, "first run")
    assert pair.former() is None
    pair.write(decision.attempt)
    assert pair.former() == decision.attempt


@pytest.mark.parametrize("content", [b"", b"one\n", b"one\ntw", b"one\ntwo\nthree\n"])
def test_a_later_run_goes_on_with_what_is_there(pair: Pair, content: bytes) -> None:
    pair.write(decided(pair).attempt)
    pair.output.write_bytes(content)
    decision = decided(pair)
    assert (decision.attempt.number, decision.fresh) == (1, "")


def test_a_grown_input_goes_on(pair: Pair) -> None:
    pair.write(decided(pair).attempt)
    pair.output.write_bytes(b"one\ntwo\nthree\n")
    with pair.input.open("ab") as file:
        file.write(b"four\n")
    decision = decided(pair)
    assert (decision.attempt.number, decision.fresh, decision.attempt.input_size) == (1, "", 19)


def test_a_removed_output_begins_anew(pair: Pair) -> None:
    pair.write(CopyAttempt(4, *_facts(pair)))
    decision = decided(pair)
    assert (decision.attempt.number, decision.fresh) == (5, "OUTPUT was removed")


@pytest.mark.parametrize("output", [b"one\ntwo\nthree\n", b"un\n", b""])
def test_a_replaced_input_begins_anew(pair: Pair, output: bytes) -> None:
    pair.write(CopyAttempt(1, *_facts(pair)))
    pair.output.write_bytes(output)
    pair.input.write_bytes(b"un\ndeux\n")
    decision = decided(pair)
    assert (decision.attempt.number, decision.fresh) == (2, "INPUT was replaced")


@pytest.mark.parametrize("is_known", [True, False])
def test_a_foreign_output_is_never_written(pair: Pair, is_known: bool) -> None:
    if is_known:
        pair.write(CopyAttempt(1, *_facts(pair)))
    pair.output.write_bytes(b"one\nmine\n")
    with pytest.raises(InvalidArgument, match="line 2, byte 4"):
        decided(pair)
    pair.input.write_bytes(b"un\ndeux\n")
    with pytest.raises(InvalidArgument, match="OUTPUT"):
        decided(pair)
    assert pair.output.read_bytes() == b"one\nmine\n"


def test_an_output_that_only_repeats_input_may_be_written_anew(pair: Pair) -> None:
    pair.output.write_bytes(b"one\n")
    assert decided(pair).fresh == "OUTPUT holds nothing but the beginning of INPUT"


def _facts(pair: Pair) -> tuple[int, str]:
    facts = check_text(pair.input)
    return facts.size, facts.sha256


def test_output_must_be_another_file_in_a_folder_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"x\n")
    os.link(path, tmp_path / "hard")
    (tmp_path / "soft").symlink_to(path)
    for bad in (path, tmp_path / "hard", tmp_path / "soft", tmp_path / "no" / "x", tmp_path, Path("/dev/null")):
        with pytest.raises(InvalidArgument, match="OUTPUT"):
            checked_output(bad, path)
    assert checked_output(tmp_path / "out", path) == (tmp_path / "out").resolve()


def test_names_depend_on_both_paths_and_the_attempt(pair: Pair, tmp_path: Path) -> None:
    other = Pair(pair.home, pair.input, tmp_path / "elsewhere")
    copy_attempt = CopyAttempt(1, 0, "")
    assert pair.stem(copy_attempt) != other.stem(copy_attempt)
    assert pair.stem(copy_attempt) == pair.prefix + "1"
    assert len(pair.digest) == 8


@pytest.mark.parametrize("chunk", [1, 4, 1 << 20])
def test_files_are_compared_in_pieces(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "CHUNK_BYTES", chunk)
    whole, part = tmp_path / "whole", tmp_path / "part"
    whole.write_bytes(b"one\ntwo\nthree\n")
    for content, beginning, equal in (
        (b"one\ntwo\nthree\n", None, None),
        (b"one\ntw", None, ByteDifference(6, 2)),
        (b"", None, ByteDifference(0, 1)),
        (b"one\ntwX\nthree\n", ByteDifference(6, 2), ByteDifference(6, 2)),
        (b"one\ntwo\nthree\nfour\n", ByteDifference(14, 4), ByteDifference(14, 4)),
    ):
        part.write_bytes(content)
        assert is_beginning(part, whole) == beginning
        actual_verdict = verdict(part, whole)
        assert actual_verdict.difference == equal
        assert (actual_verdict.size, actual_verdict.lines) == (len(content), content.count(b"\n"))
        assert actual_verdict.sha256 == hashlib.sha256(content).hexdigest()


def test_phases_keep_their_first_beginning_and_end() -> None:
    now = iter([0.0, 1.0, 3.0, 4.0, 9.0, 9.0])
    phases = Phases(lambda: next(now))
    phases.begin("a")
    phases.begin("a")
    phases.end("a")
    phases.end("a")
    phases.begin("b")
    assert [(p.name, p.begin, p.end) for p in phases.all] == [("a", 1.0, 3.0), ("b", 4.0, None)]
    lines = phases.lines()
    assert "2.0 s" in lines[0]
    assert "5.0 s" in lines[1]


def test_a_meter_tells_the_rate_of_the_last_seconds() -> None:
    meter = RateMeter(total=1000, window_seconds=5.0)
    assert meter.rate(0, 0.0) == 0.0
    assert meter.rate(100, 1.0) == 100.0
    assert meter.seconds_left(100, 100.0) == 9.0
    for second in range(2, 12):
        rate = meter.rate(100, float(second))
    assert rate == 0.0
    assert meter.seconds_left(100, rate) is None
    assert "all there" in line_of(Leg(1000, 5, 0.0, "RUNNING"), meter, 13.0)


def test_the_newest_copy_run_tells_the_committed_position() -> None:
    old = CopyRun(uid="1", connector="c", state=CopyRunState.COPY_RUN_STATE_ENDED)
    old.create_time.FromSeconds(1)
    new = CopyRun(uid="2", connector="c", progress=CopyProgress(offsets={'{"filename":"f"}': '{"position":7}'}))
    new.create_time.FromSeconds(2)
    assert newest_run([new, old, CopyRun(uid="3", connector="d")], "c") is new
    assert source_position(new) == 7
    assert source_position(old) is None
    assert source_position(None) is None
