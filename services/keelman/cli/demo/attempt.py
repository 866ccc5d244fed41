"""Finds the attempt at copying a file that a run continues, so that nothing is lost or duplicated.

An attempt's connectors and topic have its name; by their offsets and journals a later run continues where it stopped.
Pure except for reading the two files and the small record of each pair.
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
class CopyAttempt:
    """One attempt: its number, and the size and digest of INPUT when it began."""

    number: int
    input_size: int
    input_sha256: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The attempt to run. `fresh` is the reason for a new attempt (empty: the former one continues). A fresh attempt
    starts without OUTPUT and without connectors of former attempts."""

    attempt: CopyAttempt
    fresh: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """INPUT and OUTPUT, links resolved, and the home that holds their record."""

    home: Home
    input: Path
    output: Path

    @property
    def digest(self) -> str:
        """A short digest that identifies this pair among all others."""
        return hashlib.sha256(f"{self.input}\0{self.output}".encode()).hexdigest()[:8]

    @property
    def prefix(self) -> str:
        """The prefix of the names of all its connectors and topics."""
        return f"copy-{self.digest}-"

    def stem(self, attempt: CopyAttempt) -> str:
        """Returns the name of an attempt's topic; its connectors add -source and -sink."""
        return f"{self.prefix}{attempt.number}"

    @property
    def record(self) -> Path:
        """The file with the latest attempt."""
        return self.home.root / "runs" / f"{self.digest}.json"

    def former(self) -> CopyAttempt | None:
        """Returns the latest attempt; None for none."""
        try:
            document = json.loads(self.record.read_text(encoding="utf-8"))
            return CopyAttempt(document["number"], document["input_size"], document["input_sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, attempt: CopyAttempt) -> None:
        """Writes the attempt to its record, before its connectors and topic exist."""
        paths = {"input": str(self.input), "output": str(self.output)}
        write_file(self.record, json.dumps(paths | asdict(attempt), indent=2).encode())


def decide(pair: Pair, facts: Facts) -> Decision:
    """Decides which attempt to run. Raises InvalidArgument for an OUTPUT that must not be
    overwritten; changes nothing."""
    former = pair.former()
    there = pair.output.exists()
    difference = is_beginning(pair.output, pair.input) if there else None
    number = former.number + 1 if former else 1
    begun = CopyAttempt(number, facts.size, facts.sha256)
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
        return Decision(CopyAttempt(former.number, facts.size, facts.sha256))
    if difference is not None and sha256_of_first(pair.output, pair.output.stat().st_size) != former.input_sha256:
        raise InvalidArgument(
            f"OUTPUT {pair.output}: holds an incomplete copy of an earlier content of INPUT: remove it to have it "
            "written again, or name another OUTPUT"
        )
    return Decision(begun, "INPUT was replaced")


def _same_or_grown(former: CopyAttempt, facts: Facts) -> bool:
    if facts.size < former.input_size:
        return False
    if facts.size == former.input_size:
        return facts.sha256 == former.input_sha256
    return sha256_of_first(facts.path, former.input_size) == former.input_sha256


def checked_output(output: Path, input_path: Path) -> Path:
    """Returns OUTPUT with links resolved. Raises InvalidArgument if it is INPUT, or cannot be written."""
    resolved = output.expanduser().resolve()
    folder = resolved.parent
    if not folder.is_dir():
        raise InvalidArgument(
            f"OUTPUT {output}: folder {folder} does not exist: legal is a file in a folder that exists"
        )
    if resolved.exists() and resolved.samefile(input_path):
        raise InvalidArgument(f"OUTPUT {output}: is INPUT itself: legal is another file")
    if resolved.exists() and not resolved.is_file():
        raise InvalidArgument(f"OUTPUT {output}: is not a regular file: legal is a file, or a name that is free")
    if not os.access(resolved if resolved.exists() else folder, os.W_OK):
        raise InvalidArgument(f"OUTPUT {output}: permission denied: legal is a file that this user may write")
    return resolved
