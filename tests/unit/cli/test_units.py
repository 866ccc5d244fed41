"""Sizes and durations as options have them."""

from __future__ import annotations

import re

import pytest
import typer

from keelman.cli.commands.records.dead_letters import since
from keelman.cli.options import duration_of, seconds_of
from keelman.cli.sizes import size_of
from keelman.model.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1000", 1000),
        ("512MiB", 512 << 20),
        ("512Mi", 512 << 20),
        ("1.5 GiB", 3 << 29),
        ("2gb", 2_000_000_000),
        ("7B", 7),
    ],
)
def test_sizes_are_typed_as_people_do(text: str, size: int) -> None:
    assert size_of("--memory", text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1e9", "5 parsecs", "1M2"])
def test_other_sizes_are_refused_with_what_is_legal(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"--memory: .* e\.g\. 512MiB"):
        size_of("--memory", text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("7d", 604_800), ("12h", 43_200), ("30m", 1800), ("2s", None), ("7", None), ("1.5d", None)]
)
def test_a_duration_has_the_units_of_its_option(text: str, seconds: float | None) -> None:
    assert duration_of(text, re.compile(r"(\d+)([dhm])")) == seconds


@pytest.mark.parametrize(("text", "seconds"), [(" 90 ", 90), ("90s", 90), ("1.5m", 90), ("1 h", 3600), ("250ms", 0.25)])
def test_times_to_wait(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "1d", "-1", "soon"])
def test_illegal_times_to_wait(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"is not legal: seconds, as 90, 90s, 1\.5m or 1h"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["", "90", "1.5h", "1w", "soon", "99999999999d"])
def test_illegal_times_of_dead_letters(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"--since: .* 90m, 12h, 7d ago"):
        since(text)
