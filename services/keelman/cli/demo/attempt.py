"""Finds the attempt at copying a file that a run continues, so that nothing is lost and nothing doubled.

An attempt's connectors and topic carry its name; their offsets and journals make a later run go on where it stopped.
Pure but for reading the two files and the small record that is kept of each pair.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from keelman.cli.demo.compare import is_beginning
from keelman.cli.demo.text import Facts, sha256_of_first
from keelman.model.errors import InvalidArgument
from keelman.runtime.home import Home, write_file


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: its number, and what INPUT was when it began."""

    number: int
    input_size: int
    input_sha256: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The attempt to go on with. `fresh` says why a new one begins (empty: the former goes on); a fresh one starts
    without OUTPUT and without connectors of former ones."""

    attempt: Attempt
    fresh: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """INPUT and OUTPUT, links resolved, and the home that keeps the record of them."""

    home: Home
    input: Path
    output: Path

    @property
    def digest(self) -> str:
        """Identifies this pair among all others."""
        return hashlib.sha256(f"{self.input}\0{self.output}".encode()).hexdigest()[:8]

    @property
    def prefix(self) -> str:
        """What the names of all its connectors and topics begin with."""
        return f"copy-{self.digest}-"

    def stem(self, attempt: Attempt) -> str:
        """Name of an attempt's topic; its connectors add -source and -sink."""
        return f"{self.prefix}{attempt.number}"

    @property
    def record(self) -> Path:
        """Where the latest attempt is written down."""
        return self.home.root / "runs" / f"{self.digest}.json"

    def former(self) -> Attempt | None:
        """The latest attempt; None when there was none."""
        try:
            document = json.loads(self.record.read_text(encoding="utf-8"))
            return Attempt(document["number"], document["input_size"], document["input_sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, attempt: Attempt) -> None:
        """Writes the attempt down, before anything of it exists."""
        paths = {"input": str(self.input), "output": str(self.output)}
        write_file(self.record, json.dumps(paths | asdict(attempt), indent=2).encode())


def decide(pair: Pair, facts: Facts) -> Decision:
    """What to go on with. Raises InvalidArgument for an OUTPUT that is not ours to write; changes nothing."""
    former = pair.former()
    there = pair.output.exists()
    difference = is_beginning(pair.output, pair.input) if there else None
    number = former.number + 1 if former else 1
    begun = Attempt(number, facts.size, facts.sha256)
    if former is None:
        if difference is not None:
            raise InvalidArgument(
                f"OUTPUT {pair.output}: exists, and differs from INPUT at line {difference.line}, "
                f"byte {difference.byte}: legal is a new name, or what an earlier run wrote from this INPUT"
            )
        return Decision(begun, "first run" if not there else "OUTPUT holds nothing but the beginning of INPUT")
    if _same_or_grown(former, facts):
        if not there:
            return Decision(begun, "OUTPUT was removed")
        if difference is not None:
            raise InvalidArgument(
                f"OUTPUT {pair.output}: was changed by someone else: it differs from INPUT at line {difference.line}, "
                f"byte {difference.byte}; remove it to have it written again, or name another OUTPUT"
            )
        return Decision(Attempt(former.number, facts.size, facts.sha256))
    if difference is not None and sha256_of_first(pair.output, pair.output.stat().st_size) != former.input_sha256:
        raise InvalidArgument(
            f"OUTPUT {pair.output}: holds an incomplete copy of an earlier content of INPUT: remove it to have it "
            "written again, or name another OUTPUT"
        )
    return Decision(begun, "INPUT was replaced")


def _same_or_grown(former: Attempt, facts: Facts) -> bool:
    if facts.size < former.input_size:
        return False
    if facts.size == former.input_size:
        return facts.sha256 == former.input_sha256
    return sha256_of_first(facts.path, former.input_size) == former.input_sha256


def checked_output(output: Path, given: Path) -> Path:
    """OUTPUT with links resolved. Raises InvalidArgument when it is INPUT, or cannot be written."""
    resolved = output.expanduser().resolve()
    folder = resolved.parent
    if not folder.is_dir():
        raise InvalidArgument(f"OUTPUT {output}: there is no folder {folder}: legal is a file in a folder that exists")
    if resolved.exists() and resolved.samefile(given):
        raise InvalidArgument(f"OUTPUT {output}: is INPUT itself: legal is another file")
    if resolved.exists() and not resolved.is_file():
        raise InvalidArgument(f"OUTPUT {output}: is not a regular file: legal is a file, or a name that is free")
    if not os.access(resolved if resolved.exists() else folder, os.W_OK):
        raise InvalidArgument(f"OUTPUT {output}: permission denied: legal is a file that this user may write")
    return resolved
